#include "detect/signs.h"

#include <span>

namespace belljar::detect {
namespace {

// English, Spanish, French, German, Russian, Chinese; accents are folded before. Orders are in the form a stranger would give them
// to a machine: where a language has one, the familiar imperative, which descriptions seldom use.
constexpr Words kSignRows[] = {
    {kDrop,
     "ignore ignoring disregard* forget overrid* bypass* neglect discard abandon drop scratch dismiss "
     "ignora ignoren ignorad olvida olvide olviden olviden descarta desestima omite abstraction ignorez oubliez oublie delaisse "
     "ignoriere* ignorieren vergiss vergessen missachte* verwirf hinweg "
     "игнорир* забуд* проигнорир* отбрось* отмени* пренебреги* "
     "忽略 无视 忘记 忘掉 抛开 不要理会 不理会 抛弃 别管 不必理会"},
    {kEarlier,
     "previous prior above earlier preceding existing original all any system initial safety everything before whatever former "
     "anterior* previa* previo* todas todo original* toutes tout precedent* precede initiales auparavant systeme sistema "
     "vorherig* bisherig* alle alles obigen ursprunglich* fruher* bisher "
     "предыдущ* все прежн* раньше ранее системн* начальн* вышеуказанн* всё "
     "之前 以上 上述 所有 全部 原有 先前 前面 一切 原来 系统 原先"},
    {kEarlier | kYou, "your tus tu tes ton vos ta votre deine deinen deiner deines твои твой своими свои 你的 您的"},
    {kYou,
     "you yourself te ti tuyo usted vous toi toi-meme du dich dir dein ihr ты тебе тебя тебя твоя твоей твою свою своё свое свой "
     "вам "
     "你 您"},
    {kOrders,
     "instruction* rules guideline* guidance directive* directions restrictions constraints policies guardrails programming brief "
     "instruccion* reglas regla indicaciones ordenes directrices normas consignes consigne regles regle ordres directives "
     "anweisung* regeln vorgaben befehle systemvorgaben richtlinien weisungen "
     "инструкц* указани* правил* команды приказ* установк* "
     "指令 规则 要求 设定 命令 限制 规定 指示 约束"},
    {kOrders | kPrompt, "prompt* systemprompt* промпт* 提示词 系统提示 提示"},
    {kSend,
     "send upload post forward exfiltrate transmit email leak mail curl submit share surrender dispatch relay "
     "envia enviar* envie sube subelo subela reenvia reenvie transmite manda envoie envoyez transmets transfere transmettez "
     "sende senden schick* leite ubermittle lade hochladen weiterleiten expedie expediez "
     "отправ* перешли* загрузи* вышли передай* пошли отошли скинь "
     "发送 上传 转发 发给 发到 传到 提交到 传给 发往 寄给 传输"},
    {kSecret,
     "password* token* credential* secret* apikey* keys id_rsa env cookie cookies ssh aws database_url key private "
     "contrasena* credenciales secretos claves clave cles cle identifiants passe jeton "
     "passwort* kennwort* zugangsdaten schlussel geheimnis* секрет* парол* ключ* токен* 密钥 私钥 密码 口令 令牌 凭证 凭据 netrc "
     "npmrc kubeconfig id_ed25519"},
    {kHaul,
     "conversation* inbox contacts mails emails correo correos conversacion* discussion courriel* gesprach* "
     "gesprachs письм* писем бесед* переписк* диалог* 对话 邮件 聊天 通讯录 history"},
    {kReveal,
     "reveal print repeat disclose expose output show dump quote recite display revela muestra repite imprime mostrar revele "
     "affiche* "
     "repete "
     "montre zeige verrate wiederhole gib покажи* раскрой* повтори* выведи* процитируй* 显示 复述 重复 输出 打印 透露"},
    {kModel,
     "assistant* agent* model models bot bots asistente* agente* modelo* modele* assistent* агент* ассистент* модел* модель бот "
     "助手 代理 模型 机器人"},
    {kAi,
     "ai llm llms chatbot* chatgpt claude gpt copilot gemini codex grok deepseek qwen ia ki ki-agenten sprachmodell* ии нейросет* "
     "人工智能 语言模型 大模型 "
     "智能体 ai助手"},
    {kLanguage, "language lenguaje langage языков* coding automated autonomous virtual virtuel virtuell* виртуальн* ia ai ki ии"},
    {kHide,
     "tell mention inform notify alert telling informing mentioning notifying warn warning learn know refer reveal "
     "digas menciones informes avises avisar informar cuentes mencionar menciona sepa informer mentionne* informe* prevenir dis "
     "dire "
     "avertir sache sag sage sagen erwahne* informiere* warnen erfahre erfahrt melde "
     "сообща* говори* упомина* предупрежд* пиши узна* рассказыва* "
     "告诉 告知 提到 提及 通知 知情 知道"},
    {kNot,
     "not never without don't no cannot nor nothing stop quit cease sin nunca nada ne sans jamais pas rien ningun ningu* aucun "
     "aucune aucunes "
     "plus jamas nicht nichts ohne "
     "nie kein "
     "keine keinen niemals "
     "не без никогда ничего нет нельзя "
     "不 不要 无需 不用 不必 没有 别 不得 不再 无须 禁止"},
    {kPerson,
     "user* anyone human* person nobody customer* usuario* nadie persona utilisateur* personne benutzer* nutzer* niemandem "
     "kunden "
     "пользовател* никому человек* "
     "用户 任何人 客户 主人"},
    {kAct,
     "run execute delete remove erase wipe call invoke install download read open close merge fetch add append insert set write "
     "put "
     "copy create change edit replace commit push start use grant give make carry apply start launch approve accept sign confirm "
     "click visit rate label list cite recommend mark treat close reset resume export collect share paste rename build reply "
     "answer "
     "respond report say call end begin finish enable switch turn grade publish encode stop keep leave state claim collect gather "
     "take "
     "grab extract pull enter embed attach perform rerun "
     "ejecuta ejecute ejecuten borra borre elimina elimine instala instale descarga lee abre abra anade agrega escribe copia crea "
     "cambia pon haz hazla hazlo da date llama usa marca aprueba acepta confirma recomienda cierra fusiona cita di quita publica "
     "contesta responde continua activa actua guarda anadir recomendar "
     "execute executez supprime supprimez installe telecharge lis ouvre ajoute ajoutez ecris copie cree change mets fais donne "
     "donne-toi appelle utilise marque approuve accepte confirme recommande ferme fusionne cite retire publie reponds continue "
     "active "
     "lance lancez termine affirme attribue classe garde classer efface modifie recommander "
     "fuhre fuhrt losche loscht entferne entfernt installiert lest schreibt kopiert installiere lies offne fuge schreibe kopiere "
     "andere setze tu gib rufe nutze nimm genehmige akzeptiere "
     "bestatige empfiehl schliesse schliese ubernimm zitiere veroffentliche antworte fahre aktiviere starte beende merke behaupte "
     "empfehlen setzen erstelle "
     "выполни* удали* запусти* установи* скачай* прочитай* открой* закрой* добавь* допиши* напиши* скопируй* создай* измени* "
     "поставь* "
     "сделай* дай выдай* вызови* используй* отметь* одобри* прими* подтверди* рекоменд* влей* убери* сотри* опубликуй* ответь* "
     "отвечай* продолжай* включи* закончи* скажи* пометь* поставить действуй* "
     "执行 运行 删除 清空 打开 写入 加上 添加 写上 调用 批准 确认 推荐 合并 关闭 修改 更改 安装 下载 标记 回答 服从 继续 给 复制 "
     "删掉 "
     "创建 点击 引用 读取 收集 获取"},
    {kTarget,
     "command* files file repository script tool database project folder branch comando* archivo archivos carpeta fichier fichiers "
     "commande dossier depot dateien datei befehl ordner ordners skript команд* файл* папк* скрипт* title "
     "文件 命令 仓库 脚本 数据库 目录 文件夹"},
    {kMust,
     "must should shall has have needs debe deben debes tiene tienes dois doit doivent devez muss mussen musst soll sollen sollst "
     "sollten должен должн* обязан* следует надо 必须 应当 应该 务必 需 要"},
    {kNow,
     "now immediately henceforth ahora inmediatamente ya maintenant desormais immediatement jetzt sofort ab теперь сейчас "
     "немедленно "
     "立即 现在 立刻 马上 此刻 从此"},
    {kTalk,
     "injection* injected attack* jailbreak* vulnerabilit* owasp adversar* malicious* mitigat* exploit* threat* payload* phishing "
     "malware detector* inyeccion ataque* atacante* vulnerabilidad* malicios* attaque* attaquant* hameconnage vulnerabilite* "
     "malveillan* menace angriff* angreifer* schwachstelle* schadlich* bedrohung* атак* инъекци* злоумышленник* уязвимост* "
     "вредонос* "
     "угроз* внедрени* джейлбрейк* фишинг* 注入 攻击 漏洞 越狱 威胁 钓鱼 载荷 恶意"},
    {kReply,
     "answer answers reply replies response responses summary summaries summarise summarize summarising summarizing report output "
     "verdict answering "
     "respuesta* resumen resumir informe reponse* resume resumant resumer compte rapport antwort* zusammenfass* bericht* ответ* "
     "пересказ* отчет* сводк* 回答 总结 回复 报告 摘要"},
    {kLead,
     "please and then also first just now kindly do turn switch so must should shall por favor y luego tambien primero e et puis "
     "aussi d'abord "
     "veuillez s'il und dann auch bitte zuerst erst и затем также пожалуйста сначала сперва просто а 请 先 并 并且 然后 再 改为 "
     "直接 "
     "把 将 立即 必须 应当 顺便 逐字"},
    {kOff,
     "disable disabled skip deactivate deactivated bypass off disabling skipping desactiva salta omite apaga desactive saute "
     "desactivez abschalte ab "
     "schalte "
     "deaktiviere uberspringe отключи* пропусти* выключи* обойди* 关闭 禁用 跳过 绕过 关掉 停用"},
    {kGuarding,
     "sandbox confirmation confirmations confirm check checks review approval permission permissions filter filters verification "
     "verify certificate two-factor consent logging firewall guardrails safety factor "
     "confirmacion confirmar confirmacion* comprobaciones revision aprobacion permiso permisos aislado verificacion verificaciones "
     "confirmer verifications verification bac autorisation autorisations controle controles relecture "
     "bestatigung bestatigt bestatigen prufung prufungen zugriffsprufung genehmigung berechtigungsanfragen berechtigung* freigabe "
     "подтвержден* проверк* песочниц* разрешени* одобрени* согласи* "
     "沙箱 确认 检查 审批 权限检查 权限请求 权限 审核 验证 许可"},
    {kPay,
     "pay transfer wire buy purchase subscribe order book transfiere paga compra suscribe vire paie achete reserve uberweise* "
     "bezahle "
     "kaufe buche abonniere переведи* оплати* купи* закажи* оформи* 转到 转账 付款 购买 支付 订阅 转过去 汇款"},
    {kFunds,
     "balance funds money card insurance account iban payment coins invoice dollars eur usd saldo dinero tarjeta seguro cuenta "
     "factura "
     "solde argent carte assurance compte facture guthaben geld karte versicherung konto rechnung остат* деньг* карт* страховк* "
     "счет* "
     "余额 银行卡 保险 账户 钱 发票 款"},
    {kTool, "tool tools function herramienta* funcion outil outils fonction werkzeug* funktion инструмент* функци* 工具 函数"},
    {kLater,
     "future later next subsequent every each all proximas proximos futuras futuros siguientes todas prochaines futures futurs "
     "kunftig* spatere* spateren nachsten jede alle следующ* будущ* всех 以后 今后 将来 所有 后续 下次"},
    {kSession,
     "session* conversation* chats sesion* conversacion* seance* discussions sitzung* gesprach* сеанс* "
     "бесед* разговор* 会话 对话"},
    {kRead,
     "reading reads processing processes processed processing parses parsing loads loading sees seeing summarising summarizing "
     "analysing analyzing scanning triaging judging reviewing indexing evaluating ingesting crawling summarises summarizes ingests "
     "crawls lea leas lean leen lee procesen procesa analiza "
     "resumir lit lisent lisant lisez analyse analysent traite traitent lesen liest verarbeiten verarbeitet auswertet auswerten "
     "auswertest читающ* читает читают чита* обрабатыва* анализиру* разбираю* 读取 读到 阅读 正在 处理 分析 看到"},
    {kThis,
     "this these page file document text notes message repository field record log logs website paragraph section issue readme "
     "comment este esta estos pagina archivo "
     "documento texto campo mensaje ce cette ces page fichier document texte champ depot dies* diese* diesen seite datei text "
     "dokument "
     "eintrag repository это этот эту эти этого этому страниц* файл* документ* текст* поле репозитори* "
     "本 此 这 这个 这些 这一 页 文件 文档 本页 仓库 内容"},
    {kPretend,
     "pretend imagine roleplay role-play persona act suppose assume actua finge imagina fingir imagine joue simule pretends spiele "
     "stell simuliere представь* притворись* играй* вообрази* 假装 扮演 想象 假设"},
    {kPretend | kLead, "fais tu"},
    {kLimits,
     "limits limit restrictions restriction unrestricted unfiltered uncensored filters ethics ethical limites restricciones "
     "filtros "
     "limite restrictions filtres einschrankung* grenzen filter beschrankung* ограничен* фильтр* цензур* предел* 限制 约束 过滤 "
     "道德"},
    {kGot,
     "told received given instructed read configured upgraded promoted elevated recibiste recibido recibidas dieron pidio "
     "dijeron indicaron recues recu recus "
     "donnees dicho "
     "demande bekommen erhalten gelesen gegeben получен* получил* дали сказал* велел* давал* 收到 得到 给你"},
    {kFollow,
     "follow obey obeying comply do act execute run heed attention apply adhere sigas sigue obedece obedezca haz ejecuta "
     "cumple suis "
     "suivez "
     "obeis obeissez obeit fais execute befolge* beachte folge gehorche tu fuhre tue halte haltet следуй* соблюда* исполня* "
     "выполня* выполни* "
     "сделай* внимания подчиня* слушай* 遵守 遵循 服从 照做 执行 照着做 照我说 按照 听从"},
    {kApprove,
     "approved approve authorized authorised authorize granted permitted allowed permit allow cleared confirmed consented accepted "
     "aprobo apruebe aprueba autorizo autoriza autorizado aprobado approuve autorise autorisee approuvee accorde genehmigt "
     "genehmige "
     "erlaubt erlaube freigegeben zugestimmt одобрил* одобри* разреш* согласовал* позволя* "
     "批准 授权 同意 允许 许可"},
    {kOffice,
     "administrator admin operator developer developers ceo boss management compliance legal security vendor system administrador "
     "operador desarrollador sistema administrateur operateur developpeur systeme betreiber entwickler vorgesetzt* администратор* "
     "оператор* разработчик* начальник* системн* директор* 管理员 操作员 开发者 系统 领导 老板"},
    {kAsk,
     "ask asks asking asked request requests question questions waiting wait doubt preguntar pregunta preguntes pedir pidio "
     "esperar "
     "demander demande attendre question ruckfrage nachfrage fragen frage warten вопрос* спрашива* спрос* просит дожида* ожида* "
     "询问 提问 问 等待 等"},
    {kStore, "cursorrules windsurfrules bashrc zshrc crontab sudoers authorized_keys"},
    {kMemory, "memory memoria memoire gedachtnis памят* 记忆"},
    {kMd, "md"},
    {kSelf, "yourself itself mismo date toi-meme donne-toi toi dir selbst себе сам сама самостоятельно 自己 自行 自身"},
    {kNeed,
     "required needed need necessary needs hace falta necesario necesita besoin necessaire faut mussen muss notig erforderlich "
     "требу* нужн* необходим* 需要 必要 需"},
    {kVoid,
     "void cancelled canceled revoked invalid obsolete expired superseded apply anuladas canceladas validas nulles annulees "
     "valables "
     "ungultig aufgehoben gelten действуют отменен* недействительн* 作废 失效 取消 无效"},
    {kTransform,
     "translate decode decrypt decipher unscramble rot13 traduce descifra decodifica invierte traduis "
     "dechiffre "
     "decode ubersetze entschlussle entschlussele dekodiere переведи расшифруй* декодируй* 翻译 解码 解密 破译"},
    {kImage, "image picture img imagen foto photo bild картинк* изображен* фото 图片 图像 图"},
    {kSwap,
     "replace replacing insert inserting substitute where poniendo sustituyendo reemplaza remplacant remplace inserant setze "
     "ersetze "
     "einsetzen einfugen подстав* замени* заменив* вставь* 换成 替换 填入"},
    {kOmit,
     "hide omit conceal oculta omite esconde escondelo omets dissimule lass verschweig* "
     "verberge verstecke скрой* спрячь* утаи* умолчи* 隐瞒 隐藏 省略"},
    {kNotice,
     "note notice message attention meant intended addressed hello hi dear hey nota mensaje aviso atencion "
     "querido estimado dirigido attention destine note cher bonjour hinweis nachricht achtung lieber liebe hallo "
     "сообщение внимание дорогой уважаемый примечание 致 消息 注意 亲爱的 提示 告"},
    {kHanded, "把 将"},
    {kInvoke, "call invoke llama appelle rufe вызови* 调用"},
    {kWithout, "without sin sans ohne без never 无需 不用 不必 无须"},
    {kTo, "to for any all every a al los para todos pour aux an fur alle jede для всем 给 致 所有 对"},
    {kStored,
     "stored saved guardada guardado enregistree sauvegardee gespeicherte* hinterlegte* сохраненн* привязанн* 保存的 已保存 "
     "绑定的"},
    {kBefore, "before first beforehand antes primero avant d'abord zuerst bevor vor прежде сначала перед до 之前 先 一开始 首先"},
    {kPolicy,
     "policy policies terms update revision regulation rule norms politica normas actualizacion politique regles regle richtlinie* "
     "regeln vorschrift* политик* правил* обновлен* 政策 规定 条款 更新 新规"},
    {kRights,
     "rights permissions admin administrator root sudo passwordless privileges derechos permisos administrador "
     "droits "
     "administrateur rechte administratorrechte rechten прав* администратор* 权限 管理员"},
    {kSays,
     "adds says wants added continues anade agrega dice quiere ajoute dit veut demande erganzt sagt mochte добавля* говорит просит "
     "хочет 补充 表示 说 要求"},
    {kTask, "task step goal job objective mission tarea paso mision tache etape aufgabe schritt задач* шаг цель 任务 目标 步骤"},
    {kRemember,
     "remember memorise memorize save recuerda guarda retiens garde memorise merke merk speichere запомни* сохрани* 记住 记下 "
     "牢记"},
    {kQuiet,
     "quietly silently secretly discreetly covertly stealthily sigilosamente unbemerkt unauffallig скрытно 私下 默默 silencio "
     "discretamente discretement silencieusement heimlich leise stillschweigend тихо "
     "тайно незаметно 悄悄 偷偷 秘密 暗中"},
    {kWhen, "when whenever if once cuando si quand lorsque wenn falls sobald если когда как 当 如果 一旦 每当"},
};

// Further English words, in general terms: what else a stranger may call the same things. Too common to stand in a row of
// patterns.cc, so only the model (model.h) weighs them.
constexpr Words kWeighed[] = {
    // Of texts that show or describe attacks: their tests, reports, slides and articles. They excuse what stands near them.
    {kTalk,
     "attacker adversary adversaries untrusted hostile jailbroken pentest* redteam red-team researcher* advisory advisories cve "
     "owasp "
     "severity disclosure poc sanitis* sanitiz* flagged detector detection detects classifier blocklist denylist guardrail* "
     "assert asserts assertequal asserttrue assertfalse assert_eq expect expects pytest fixture fixtures testcase test_case "
     "parametrize corpus benchmark false-positive exfiltration exfiltrates exfiltrating victim victims defence defense defences "
     "defenses postmortem post-mortem incident exercise trainee* awareness slide slides spoofed "
     "atacantes defensa* incidente* vulnerable* victima* diapositiva* attaquants defense* victime* incident* diapositive* "
     "sensibilis* "
     "angreifende* opfer abwehr* vorfall* folie* schulung* schwachstellen* жертв* защит* инцидент* слайд* исследовател* вредоносн* "
     "атакующ* 攻击者 受害 防御 防护 检测 演示 案例 研究人员 恶意 红队 防范 幻灯片 攻撃者 被害 防御 検知 検出 事例 研究者 悪意 "
     "対策 "
     "공격자* 피해* 방어* 탐지* 사례* 연구* 악성* 대응* atacantes vitima* defesa* incidentes slides maliciosa* aggressor* vittim* "
     "difes* "
     "attaccanti malevol* 인젝션*"},
    {kDrop, "disobey nullify nevermind"},
    {kVoid, "outdated withdrawn lifted suspended nullified moot irrelevant"},
    {kOrders, "orders mission assignment objective preamble briefing mandate commands"},
    {kTask, "request assignment mission duty purpose objective"},
    {kAi, "siri alexa cortana mistral llama perplexity genai"},
    {kModel, "neural summarizer* summariser* evaluator* grader* robot robots crawler* scraper* copilots parser algorithm"},
    {kPerson, "owner principal people recipient victim employer"},
    {kHide, "disclose admit acknowledge explain"},
    {kSecret, "passphrase seed wallet vault pem otp passcode kubeconfig printenv environment"},
    {kSend, "paste exfil transfer deliver hand pass attach"},
    {kHaul, "transcript chat chats contacts"},
    {kReveal, "echo recite spell verbatim"},
    {kApprove, "consents signed agreed"},
    {kQuiet, "discreetly unnoticed background unaware"},
    {kOmit, "scrub withhold suppress deny"},
    {kOff, "lift drop suspend"},
    {kTransform, "decipher unscramble base64 rot13"},
};

}  // namespace

std::span<const Words> words_of_signs() noexcept { return kSignRows; }
std::span<const Words> weighed_words() noexcept { return kWeighed; }

}  // namespace belljar::detect
