// Words for acts, verbs in tools' names, and names of files that matter, in six languages.
//
// Words are stems after normalisation (lower case, without accents), since languages inflect: one stem stands
// for all endings. A stem counts at the beginning of a word and outside of names, because `delete.md` is a
// file and asks for nothing. Stems of languages that are written without blanks are found anywhere. A weak
// stem (`?`) also has a harmless everyday meaning and does not count as the user's intention.
//
// The tables are data. Whether a word belongs in them is measured with tests/guard/corpus, for what it finds
// and for what it asks about in vain.
#include "guard/lexicon.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/paths.h"
#include "belljar/turn.h"

namespace belljar::guard {
namespace {

// Stems, normalised (lower case, accents gone), between spaces: one begins a word; `=` before it: is the whole word; `_` is a
// blank. Chinese ones are found anywhere.
struct Stems {
  CallClass kind;
  std::string_view stems;
};

constexpr Stems kStems[] = {
    {CallClass::kDestructive,
     "delet remov eras wipe wiping purg =drop =drops =dropped destroy clean clear prun trash discard get_rid overwrit truncat "
     "shred "
     "unlink reset tidy throw_away =rm =rmdir retire decommission free_up empt scrub nuk terminat kill stop shut_down not_kept "
     "no_longer_needed cancel "
     "borra borre elimin suprim vaci limpi destru quit supprim efface enlev nettoy =vide vider videz detrui retir losch loesch "
     "entfern bereinig leer vernicht aufraum raum weg удал сотр стер стир очист уничтож убер убра снес почист 删 清除 清空 移除 "
     "清理 "
     "抹掉 销毁 刪"},
    {CallClass::kSending,
     "send =sent =answer email e-mail ?=mail mailed upload publish forward repl respond submit post =push =pushed pushes share "
     "sharing "
     "notif transmit deliver tell ?inform deploy ?announc ?message ?report ?expects_a_copy ?copy ?copies ?mirror ?attach hand_over "
     "escalat "
     "envi =envie mand subi sube public reenv compart notific avis respond remit envoy transfer transmet publi partag televers "
     "repond prevenez joign schick hochlad lade ubermittl weiterleit veroffentlich =teile teilen melde benachrichtig antwort "
     "zukommen ?kopie отправ пошл послат присыл пришл перешл пересл загруз выгруз опублик подел сообщ ответ ?копи 发送 发给 发到 "
     "上传 "
     "提交 "
     "转发 发布 分享 推送 通知 寄 回复 告知 抄送"},
    {CallClass::kPrivilege,
     "grant permission polic principal admin root sudo privileg access right role collaborator invit owner promot member chmod 777 "
     "world-writable writable public visib firewall authorized group elevat setuid allow permis rol acces invit conced propietar "
     "droit accord proprieta berechtig recht zugriff zugang einlad rolle eigentum mitglied прав доступ админ пригла роль владел "
     "участник 权限 管理员 授权 邀请 访问 协作 提权 公开 成员 所有者"},
    {CallClass::kPersistence,
     "hook cron schedul startup start-up autostart log_in login logs_in bashrc zshrc ?profile alias workflow =ci pipeline ?service "
     "daemon boot ?every ?each_time nightly hourly daily ?always remember ?rule filter forwarding ?whenever ?from_now_on "
     "?git_config "
     "?config "
     "arranque ?inici programa ?cada ?siempre tarea demarrage planifi ?chaque ?toujours tache zeitplan ?jede ?immer anmeld ?dienst "
     "?regel "
     "автозапуск расписан ?кажд ?служб ?запуск ?всегда вход ?правил ?启动 开机 定时 计划任务 自动运行 钩子 流水线 ?每 登录 ?规则 "
     "?以后 "
     "?总是"},
    {CallClass::kCommitment,
     "pay paid transfer buy bought purchas order book subscri reserv refund donat wire wiring invoice checkout charg rent upgrad "
     "spend settl approv merg sign renew credit pag transfi compr pedid encarg reserv suscri don renov reembols pai vire virement "
     "achet command reserv abonn regl rembours zahl uberweis kauf bestell buch reservier abonn begleich verlanger uberwies оплат "
     "оплач перевед перевод перевест куп заказ закаж заброн подпис продл 支付 付款 转账 购买 订购 预订 订阅 汇款 下单 买 续费 缴 "
     "退款"},
    {CallClass::kInstalling,
     "install need ?add =npm =pnpm =yarn =pip =pip3 =gem =brew =cargo =apt =apt-get =dnf =conda =composer =helm =docker "
     "=podman "
     "upgrad set_up setup ?updat   instal ?agreg ?anad  ?actualiz ?ajout "
     " "
     "installier ?hinzufug einricht  установ ?добав  安装 ?添加   装"},
    {CallClass::kRunning,
     "run execut launch start invok perform call build test compil check step command ejecut correr =corre lanz constru prueb "
     "orden "
     "execut lanc demarr construi fuhr ausfuhr aufruf bau befehl запус выполн собер тест команд 运行 执行 启动 构建 测试 命令 "
     "调用"},
    {CallClass::kFetching,
     "open visit fetch download look read follow link see check get page site url search find abr visit descarg mira lee consult "
     "ouvr visit telecharg voir lis consult offn besuch lade lies schau откр посет скач загруз посмотр прочит 打开 访问 下载 查看 "
     "读 "
     "参阅"},
    {CallClass::kSecretReading,
     "secret key token password passphras credential environment =env show read print reveal display dump includ attach content "
     "clave contrasen credencial secreto mostr lee imprim cle mot_de_passe identifiant affich montr lis schlussel passwort "
     "zugangsdaten geheim zeig lies inhalt ключ парол секрет учетн токен покаж прочит 密钥 密码 凭证 凭据 令牌 显示 读取 打印 "
     "机密"},
};

// Of Topic, in its order. Direction: what obliges, asks, orders in time, or says that something holds now in the place of another.
constexpr std::string_view kTopics[] = {
    "certificat policy principal ?merge loosen relax ?review ?approv ?rule verif tls ssl auth ?login log_in sign_in signed_in "
    "password ?token permission ?factor mfa csrf ?cors ?origin firewall "
    "?=port ?=ports ?=root ?limit privileg ?debug ?secur ?scan audit signature signed expir host_key sandbox trust protect encrypt "
    "?valid "
    "?check ?access ?public ?visib ?visible unsigned credential middleware ?author ?admin ?role ?grant ?owner "
    "contrasen permis segurid cortafueg verific mot_de_passe securit pare-feu droit certificado zertifikat passwort sicherheit "
    "anmeld recht prufung schutz сертиф парол безопас доступ провер защит 证书 密码 安全 验证 权限 认证 防火墙 校验",
    "must should shall =need =needs needed =has_to =have_to =is_to =are_to please requir necessar make_sure ensure never always "
    "first =before instead from_now_on from_today in_future no_longer any_more anymore obsolet outdat deprecat replac successor "
    "=moved =changed chang =now =new current switch =use =using =set =put =add =adds =get =gets =let =point =take =takes =give "
    "=gives =start =mirror redirect prerequisit expect belong append =insert =update =remove =include lacks lack missing =only "
    "=then afterwards =once =want =wants =enter =register =call =bind =run =sign =save =do =go =send =write =drop =clear =empty "
    "=can_be =may_be =stop =open =close =make =turn =wanted official canonical mandatory "
    "=debe =deben =deberia hay_que por_favor antes primero ahora nuev cambi actual reemplaz sustituy =usa =use =pon anad necesari "
    "siempre nunca =doit doivent il_faut veuillez avant =abord maintenant nouve remplac chang desormais utilis ajout toujours "
    "jamais "
    "=muss =mussen =soll =sollen bitte zuerst vorher jetzt =neu neue geandert ersetz statt kunftig ab_sofort immer =nie verwend "
    "notig erforderlich долж нужно необход пожалуйста сначал перед теперь нов замен вместо отныне всегда никогда использ "
    "必须 应该 应当 需要 请 先 首先 现在 新 改为 更换 替换 以后 今后 不再 务必 使用"};

CallClass words_of(CallClass kind) noexcept {
  if (kind == CallClass::kExfiltrating) return CallClass::kSending;
  if (kind == CallClass::kWriting || kind == CallClass::kUnread) return CallClass::kRunning;
  return kind;
}

bool is_letter_or_digit(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_cyrillic(std::string_view text, std::size_t at) noexcept {
  const auto c = static_cast<unsigned char>(text[at]);
  return c == 0xD0 || c == 0xD1;
}

// Inside a path, an address or the name of a file: "report.md" asks for nothing.
bool is_in_name(std::string_view text, std::size_t at) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || static_cast<unsigned char>(c) >= 0x80; };
  std::size_t begin = at, end = at;
  while (begin > 0 && !blank(text[begin - 1])) --begin;
  while (end < text.size() && !blank(text[end])) ++end;
  const std::string_view token = text.substr(begin, end - begin);
  for (std::size_t i = 0; i + 1 < token.size(); ++i) {
    if (token[i] == '/' || token[i] == '_' || ((token[i] == '.' || token[i] == '@') && is_letter_or_digit(token[i + 1])))
      return true;
  }
  return false;
}

// The stems of one kind by their first byte: one look-up decides nearly every place.
struct Index {
  struct Stem {
    std::string text;
    bool whole;
    bool weak;
  };
  std::vector<Stem> by_byte[256];
  explicit Index(std::string_view stems) {
    while (!stems.empty()) {
      const std::size_t end = std::min(stems.find(' '), stems.size());
      std::string stem(stems.substr(0, end));
      stems.remove_prefix(std::min(end + 1, stems.size()));
      if (stem.empty()) continue;
      const bool weak = stem[0] == '?';
      if (weak) stem.erase(0, 1);
      const bool whole = stem[0] == '=';
      if (whole) stem.erase(0, 1);
      std::ranges::replace(stem, '_', ' ');
      by_byte[static_cast<unsigned char>(stem[0])].push_back({stem, whole, weak});
    }
  }
};

const Index& index_of(CallClass kind) {
  static const std::vector<Index> all = [] {
    std::vector<Index> made;
    for (const Stems& words : kStems) made.emplace_back(words.stems);
    return made;
  }();
  static const Index none("");
  for (std::size_t i = 0; i < std::size(kStems); ++i) {
    if (kStems[i].kind == kind) return all[i];
  }
  return none;
}

const Index& index_of(Topic topic) {
  static const Index all[] = {Index(kTopics[0]), Index(kTopics[1])};
  return all[static_cast<std::size_t>(topic)];
}

bool begins_word(std::string_view text, std::size_t at) noexcept {
  if (at == 0) return true;
  if (is_letter_or_digit(text[at])) return !is_letter_or_digit(text[at - 1]) && text[at - 1] != '_';
  if (is_cyrillic(text, at)) return at < 2 || !is_cyrillic(text, at - 2);
  return true;
}

// What tools call their acts. The strictest word of a name counts.
struct Verb {
  CallClass kind;
  std::string_view words;  // whole ones, between spaces
};
constexpr Verb kVerbs[] = {
    {CallClass::kCommitment,
     " pay payment transfer renew acquire accept confirm upgrade esign buy purchase order checkout donate subscribe book reserve "
     "refund wire charge payout rent sign approve "
     "merge hire money "
     "bezahlen zahlen ueberweisen ueberweisung buchen bestellen kaufen bestellung kaufe pagar comprar reservar transferir reserva "
     "compra pago payer acheter reserver virement commander paga bonifico prenota acquista ordina betalen boeken bestellen kopen "
     "zaplac przelew kup zamow odeme satin rezerve betala boka kopa stem vote bid checkin sign signature subscribe subscription "
     "discount "},
    {CallClass::kDestructive,
     " delete remove drop purge wipe destroy erase trash clear truncate unlink cancel terminate kill revoke archive reset close "
     "stop "
     "rm uninstall "
     "loeschen stornieren absagen entfernen kuendigen abmelden leeren borrar eliminar cancelar anular supprimer annuler effacer "
     "resilier elimina cancella annulla disdici verwijder verwijderen annuleer annuleren usun anuluj sil iptal radera avboka "
     "apagar disable deactivate pause mute reject dismiss disarm discard abort withdraw decline "},
    {CallClass::kPrivilege,
     " grant invite role permission permissions collaborator admin promote owner chmod sudo member acl visibility access "
     "entitlement "
     "privilege "
     "freigeben einladen berechtigen invitar compartir permiso inviter partager condividi invita delen uitnodigen udostepnij "
     "zapros paylas davet unlock authorize collaborator share "},
    {CallClass::kPersistence,
     " schedule cron hook webhook autostart rule filter automation trigger remember memory crontab forwarding startup "},
    {CallClass::kSending,
     " send post email mail publish upload share forward tweet message notify reply comment submit push deploy sms dm broadcast "
     "slack "
     "senden schicken antworten nachricht enviar responder publicar envoyer repondre publier invia rispondi pubblica verzend "
     "verzenden stuur antwoord wyslij odpowiedz gonder yanitla skicka svara "},
    {CallClass::kInstalling, " install "},
    {CallClass::kRunning, " run exec execute bash shell terminal command sh zsh powershell eval "},
    {CallClass::kFetching, " fetch http request browse navigate download open curl visit web url "},
    {CallClass::kWriting,
     " write edit create update patch replace insert append save put set add move rename copy mkdir touch apply str draft "},
    {CallClass::kReading,
     " read get list search view find grep glob ls cat show query lookup describe stat head tail diff status count todo think "
     "lesen lese zeigen anzeigen suchen suche oeffnen verlauf liste leer buscar mostrar listar abrir lire chercher montrer lister "
     "ouvrir leggi cerca mostra apri lees zoek toon czytaj szukaj pokaz oku ara goster visa las lookup check compare preview info "
     "details history calculate translate "},
};

// `deleteFile`, `delete_file`, `DELETE-FILE` -> " delete file ".
std::string words_in(std::string_view name) {
  std::string words = " ";
  char before = ' ';
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool lower = c >= 'a' && c <= 'z';
    if (upper && before >= 'a' && before <= 'z') words += ' ';
    if (upper) words += static_cast<char>(c + 32);
    else if (lower) words += c;
    else if (words.back() != ' ') words += ' ';
    before = c;
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

// --- names of files --------------------------------------------------------------------------------------------------------------

using Names = std::span<const std::string_view>;

std::string lower_path(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == '\\') c = '/';
  }
  while (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

// `part` stands in `path` between slashes (or at an end).
bool has_part(std::string_view path, std::string_view part) noexcept {
  for (std::size_t at = path.find(part); at != std::string_view::npos; at = path.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || path[at - 1] == '/' || part.front() == '/') && (end == path.size() || path[end] == '/')) return true;
  }
  return false;
}

bool any_part(Names parts, std::string_view path) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return has_part(path, part); });
}
bool any_name(Names names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }
bool any_ending(Names endings, std::string_view name) {
  return std::ranges::any_of(endings,
                             [&](std::string_view ending) { return name.size() > ending.size() && name.ends_with(ending); });
}

constexpr std::string_view kSecretParts[] = {".ssh",
                                             ".aws",
                                             ".gnupg",
                                             ".kube",
                                             ".docker/config.json",
                                             ".config/gh",
                                             ".config/gcloud",
                                             ".azure",
                                             ".password-store",
                                             ".config/google-chrome",
                                             ".mozilla",
                                             "login data",
                                             "cookies",
                                             "keychains",
                                             ".local/share/keyrings",
                                             "/etc/shadow",
                                             "/proc/self/environ",
                                             "/run/secrets",
                                             "secrets",
                                             ".codex/auth.json",
                                             ".claude/.credentials.json",
                                             ".config/rclone"};
constexpr std::string_view kSecretNames[] = {".env",
                                             ".netrc",
                                             ".pgpass",
                                             ".npmrc",
                                             ".pypirc",
                                             ".git-credentials",
                                             ".vault-token",
                                             "credentials",
                                             "credentials.json",
                                             "credentials.yml",
                                             "credentials.yaml",
                                             "credentials.toml",
                                             "credentials.ini",
                                             "credentials.xml",
                                             "id_rsa",
                                             "id_ed25519",
                                             "id_ecdsa",
                                             "shadow",
                                             "secrets.json",
                                             "secrets.yml",
                                             "secrets.yaml",
                                             "secrets.toml",
                                             "secret.key",
                                             "service-account.json",
                                             "token",
                                             "token.txt",
                                             "tokens.json",
                                             "wallet.dat",
                                             ".bash_history",
                                             ".zsh_history",
                                             "master.key",
                                             "passwords.txt",
                                             "kubeconfig",
                                             "terraform.tfstate",
                                             ".my.cnf",
                                             ".htpasswd",
                                             "keystore.jks"};
constexpr std::string_view kSecretEndings[] = {".pem", ".key", ".p12", ".pfx", ".kdbx", ".ppk", ".keystore", ".ovpn", ".asc"};

constexpr std::string_view kPersistentParts[] = {".git/hooks",
                                                 ".git/config",
                                                 ".github/workflows",
                                                 ".github/actions",
                                                 ".circleci",
                                                 ".husky",
                                                 ".githooks",
                                                 ".vscode",
                                                 ".idea",
                                                 ".claude",
                                                 ".cursor",
                                                 ".codex",
                                                 ".agents",
                                                 ".config/autostart",
                                                 "systemd/user",
                                                 "systemd/system",
                                                 "launchagents",
                                                 "launchdaemons",
                                                 "/etc/cron.d",
                                                 "/etc/cron.daily",
                                                 "/etc/cron.hourly",
                                                 "/etc/crontab",
                                                 "cron.d",
                                                 "cron.daily",
                                                 "/etc/profile.d",
                                                 "profile.d",
                                                 "/etc/init.d",
                                                 "/etc/rc.local",
                                                 "/var/spool/cron",
                                                 ".ssh/rc",
                                                 ".ssh/config",
                                                 ".config/fish",
                                                 ".config/git",
                                                 "site-packages",
                                                 ".local/bin",
                                                 "/etc/ld.so.preload",
                                                 "/etc/apt",
                                                 "sources.list.d",
                                                 "/etc/yum.repos.d",
                                                 ".m2",
                                                 ".cargo/config",
                                                 ".cargo/config.toml",

                                                 "/etc/environment",
                                                 ".pre-commit-config.yaml",
                                                 ".gitlab",
                                                 "/usr/local/bin"};
constexpr std::string_view kPersistentNames[] = {".bashrc",
                                                 ".bash_profile",
                                                 ".bash_login",
                                                 ".bash_logout",
                                                 ".bash_aliases",
                                                 ".profile",
                                                 ".zshrc",
                                                 ".zshenv",
                                                 ".zprofile",
                                                 ".zlogin",
                                                 ".inputrc",
                                                 ".vimrc",
                                                 ".tmux.conf",
                                                 ".gitconfig",
                                                 ".envrc",
                                                 ".gitlab-ci.yml",
                                                 "jenkinsfile",
                                                 ".travis.yml",
                                                 "azure-pipelines.yml",
                                                 "bitbucket-pipelines.yml",
                                                 "crontab",
                                                 "claude.md",
                                                 "agents.md",
                                                 "gemini.md",
                                                 ".cursorrules",
                                                 ".windsurfrules",
                                                 ".mcp.json",
                                                 "mcp.json",
                                                 "copilot-instructions.md",
                                                 "sitecustomize.py",
                                                 "usercustomize.py",
                                                 ".npmrc",
                                                 "pip.conf",
                                                 "config.fish",
                                                 ".yarnrc",
                                                 ".xprofile",
                                                 ".xinitrc",
                                                 "conftest.py",
                                                 ".gitattributes"};
constexpr std::string_view kCode[] = {".sh",   ".py",      ".js",      ".ts",  ".mjs", ".cjs",  ".jsx", ".tsx",    ".html",
                                      ".htm",  ".php",     ".rb",      ".pl",  ".go",  ".rs",   ".c",   ".cc",     ".cpp",
                                      ".h",    ".java",    ".cs",      ".ps1", ".bat", ".mk",   ".yml", ".yaml",   ".toml",
                                      ".json", ".service", ".desktop", ".ini", ".cfg", ".conf", ".tf",  ".gradle", ".xml"};
constexpr std::string_view kCodeNames[] = {"makefile", "dockerfile",     "justfile",    "rakefile",
                                           "procfile", "cmakelists.txt", "vagrantfile", "requirements.txt"};

}  // namespace

namespace {

std::size_t find_stem(const Index& index, std::string_view text, std::size_t from, Speech speech) noexcept {
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto& stems = index.by_byte[static_cast<unsigned char>(text[at])];
    if (stems.empty() || !begins_word(text, at)) continue;
    for (const Index::Stem& stem : stems) {
      if (!text.substr(at).starts_with(stem.text) || (speech == Speech::kIntention && (stem.weak || is_in_name(text, at))))
        continue;
      const std::size_t end = at + stem.text.size();
      if (!stem.whole || end == text.size() || !is_letter_or_digit(text[end])) return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::size_t find_act_word(CallClass kind, std::string_view text, std::size_t from, Speech speech) noexcept {
  return find_stem(index_of(words_of(kind)), text, from, speech);
}

std::size_t find_topic_word(Topic topic, std::string_view text, std::size_t from, Speech speech) noexcept {
  // "keller-new.example" says nothing: of direction only words count.
  return find_stem(index_of(topic), text, from, topic == Topic::kDirection ? Speech::kIntention : speech);
}

CallClass class_of_tool(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  const std::string_view subject = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  // What stands after the last `__` or `.` is the act, before it the server: mcp__mail__list_messages.
  for (const std::string_view mark : {"__", ".", "/"}) {
    const std::size_t at = name.rfind(mark);
    if (at != std::string_view::npos && at + mark.size() < name.size()) name.remove_prefix(at + mark.size());
  }
  const std::string words = words_in(name);
  CallClass found = CallClass::kRunning;
  std::size_t best = std::size(kVerbs);
  // A reading verb in front says what the rest is only the object of: get_payments, list_roles, search_emails.
  std::size_t reading_at = std::string::npos, other_at = std::string::npos;
  for (std::size_t begin = 1; begin < words.size();) {
    const std::size_t end = words.find(' ', begin);
    const std::string word = " " + words.substr(begin, end - begin) + " ";
    for (std::size_t row = 0; row < std::size(kVerbs); ++row) {
      if (kVerbs[row].words.find(word) == std::string_view::npos) continue;
      if (kVerbs[row].kind == CallClass::kReading) {
        reading_at = std::min(reading_at, begin);
      } else if (row < best) {
        best = row;
        found = kVerbs[row].kind;
        other_at = begin;
      }
      break;
    }
    begin = end + 1;
  }
  if (reading_at != std::string::npos && (other_at == std::string::npos || reading_at < other_at)) return CallClass::kReading;
  // open_mail, fetch_messages: what is opened is no act.
  if (found == CallClass::kSending && (words.starts_with(" open ") || words.starts_with(" fetch ") || words.starts_with(" load ")))
    return CallClass::kReading;
  // payments.create, permissions.upsert: the verb says little, and what stands before it more.
  if (!subject.empty() && subject.find('.') == std::string_view::npos &&
      (found == CallClass::kWriting || found == CallClass::kRunning)) {
    std::string whole(subject);
    if (whole.ends_with('s')) whole.pop_back();
    const CallClass of_subject = class_of_tool(whole);
    if (of_subject == CallClass::kCommitment || of_subject == CallClass::kPrivilege) return of_subject;
  }
  return found;
}

bool is_secret_path(std::string_view path) noexcept {
  const std::string text = lower_path(path);
  const std::string_view name = file_name(text);
  if (name.ends_with(".pub") || name == "known_hosts" || name.ends_with(".example") || name.ends_with(".sample")) return false;
  return any_part(kSecretParts, text) || any_name(kSecretNames, name) || any_ending(kSecretEndings, name) ||
         name.starts_with(".env.");
}

std::span<const std::string_view> secret_names() noexcept { return kSecretNames; }

bool is_persistent_path(std::string_view path) noexcept {
  const std::string text = lower_path(path);
  return any_part(kPersistentParts, text) || any_name(kPersistentNames, file_name(text));
}

bool is_privilege_path(std::string_view path) noexcept {
  const std::string text = lower_path(path);
  const std::string_view name = file_name(text);
  return name == "authorized_keys" || text.find("/sudoers") != std::string::npos || name == "passwd" || text == "/etc/group" ||
         text == "/etc/shadow" || text == "/etc/hosts" || name == "codeowners" || has_part(text, "/etc/pam.d");
}

bool is_code_path(std::string_view path) noexcept {
  const std::string text = lower_path(path);
  const std::string_view name = file_name(text);
  return any_ending(kCode, name) || any_name(kCodeNames, name);
}

}  // namespace belljar::guard
