// Words that begin as one of the stems, in some ten languages; `_` is a blank. The lists are short: they are traits that the trees
// of likely.h weigh, and decide nothing by themselves.
#include "guard/wishes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::guard {
namespace {

class StemList {
 public:
  explicit StemList(std::string_view stems) {
    while (!stems.empty()) {
      const std::size_t end = std::min(stems.find(' '), stems.size());
      std::string stem(stems.substr(0, end));
      stems.remove_prefix(std::min(end + 1, stems.size()));
      if (stem.empty()) continue;
      std::ranges::replace(stem, '_', ' ');
      by_byte_[static_cast<unsigned char>(stem[0])].push_back(std::move(stem));
    }
  }
  bool begins_at(std::string_view text, std::size_t at) const {
    return std::ranges::any_of(by_byte_[static_cast<unsigned char>(text[at])],
                               [&](const std::string& stem) { return text.substr(at).starts_with(stem); });
  }

 private:
  std::vector<std::string> by_byte_[256];
};

bool is_far(char c) noexcept { return (static_cast<unsigned char>(c) & 0x80U) != 0; }
bool is_latin(char c) noexcept { return c >= 'a' && c <= 'z'; }

bool has_any(std::string_view text, const StemList& stems) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool inside = at > 0 && (is_latin(text[at - 1]) || text[at - 1] == '_') && !is_far(text[at]);
    if (!inside && stems.begins_at(text, at)) return true;
  }
  return false;
}

// The word at `at` begins the text or a part of it.
bool is_in_front(std::string_view text, std::size_t at) {
  constexpr std::string_view kBefore[] = {"and", "then", "please", "to",  "also", "und", "dann", "bitte", "et",  "puis",
                                          "y",   "e",    "ed",     "poi", "en",   "i",   "и",    "just",  "now", "you"};
  if (at == 0) return true;
  const std::size_t last = text.find_last_not_of(" \n\"'(", at - 1);
  if (last == std::string_view::npos || std::string_view(".,:;!?-").find(text[last]) != std::string_view::npos) return true;
  const std::size_t blank = text.find_last_of(" \n", last);
  const std::size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  return std::ranges::find(kBefore, text.substr(begin, last - begin + 1)) != std::end(kBefore);
}

bool orders(std::string_view text, const StemList& stems) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && (is_latin(text[at - 1]) || is_far(text[at - 1]))) continue;
    if (stems.begins_at(text, at) && is_in_front(text, at)) return true;
  }
  return false;
}

const StemList& makes() {
  static const StemList list(
      "add fix change make create write implement rename refactor update replac mov convert build set_ put install remov delet "
      "clean "
      "send answer repl draft book pay order deploy publish push merge commit creat generat schedul cancel invite grant give "
      "upload "
      "save turn run start restart upgrade bump migrat use_ apply enable disable switch tidy format sort port extend correct adapt "
      "document test type fill file record log_ transfer share archive follow get_the finish let_ work do_ set resolve rotate "
      "repair "
      "open_ close_ tell_him tell_her tell_them inform renew raise lower drop undo translate_the_new "
      "schreib ander erstell fuge losch sende schick antwort bestell bezahl zahl buch korrigier setz mach leg_ ersetz benenn bau "
      "anade crea escrib cambia borra envia responde paga reserva pon corrige ajoute cree ecris change supprime envoie reponds "
      "paie "
      "reserve mets corrige aggiung crea scriv cambia cancella invia rispond paga prenota metti corregg voeg maak schrijf verander "
      "stuur betaal dodaj napisz zmien usun wyslij odpowiedz zaplac добав создай напиши измени удали отправь ответь оплати исправь "
      "添加 修改 创建 写 删除 发送 回复 支付 修复 预订 改 追加 作成 送 変更 削除");
  return list;
}
const StemList& asks() {
  static const StemList list(
      "what which who when where why how is_there are_there does did can_you_tell tell_me summar explain list show find look check "
      "read compare count describe review translat analy extract was welche wer wann wo warum wie_ fass erklar zeig lies prufe "
      "vergleich que_ cual quien cuando donde por_que resum explica lista muestra busca quel qui quand pourquoi comment liste "
      "montre "
      "trouve cosa quale quando dove perche riass elenca mostra spiega wat welke wie waar waarom vat samen jaki kto kiedy gdzie "
      "dlacz podsum что какие кто когда где почему как резюм объясн покаж найди 什么 哪 谁 何时 哪里 为什么 总结 解释 列出 查 多少 "
      "何 どの いつ 要約 教えて");
  return list;
}
const StemList& refers() {
  static const StemList list(
      "follow according as_described instruction steps as_it says_to as_in like_in as_per work_off do_what asks from_the in_the "
      "as_the like_the these this_ exactly_as listed todo ticket according_to wie_ laut gemass selon d'apres segun secondo volgens "
      "wedlug согласно 按照 根据 たとおり");
  return list;
}
const StemList& delegates() {
  static const StemList list(
      "follow according_to as_described as_it_says says instructions steps work_off work_through work_on do_what do_as exactly_as "
      "step_by_step asks_in asks_for as_per as_in resolve_the handle_the ticket tick_off apply_the checklist runbook "
      "wie_beschrieben laut gemass arbeite mach_was befolge selon suivant suis_les fais_ce segun sigue haz_lo secondo segui "
      "fai_quello volgens volg согласно следуй сделай_что 按照 根据 照着");
  return list;
}
const StemList& forbids() {
  static const StemList list(
      "don't do_not dont only_tell just_tell not_yet never without nothing_else nicht kein_ nur_ no_cambies solo_ sin_ ne_pas "
      "sans_ "
      "seulement senza non_ zonder niet не_ только 不要 别 只");
  return list;
}
const StemList& repairs() {
  static const StemList list(
      "fix repair fails failing failed broken red_ error crash bug green vulnerab does_not_work doesn't_work work_again missing "
      "reparier fehler kaputt repara corrige répare falla ripara napraw почини исправ 修");
  return list;
}
// Who a planted order is addressed to.
const StemList& assistants() {
  static const StemList list(
      "assistant agent ai_ bots bot_ bot: llm model chatbot copilot gpt claude gemini automat whoever reader assistent asistente "
      "assistente agente asystent ассистент помощник бот 助手 助理 智能体 代理 アシスタント");
  return list;
}
const StemList& reports() {
  static const StemList list(
      "error cannot not_found no_such missing unresolved undeclared undefined unknown failed failure fatal warn fehlt "
      "nicht_gefunden vulnerab severity requires unable expected");
  return list;
}

}  // namespace

Wishes read_wishes(std::string_view text) {
  text = text.substr(0, 4096);
  Wishes wishes{.makes = orders(text, makes()),
                .makes_any = has_any(text, makes()),
                .asks = has_any(text, asks()),
                .refers = has_any(text, refers()),
                .forbids = has_any(text, forbids()),
                .repairs = has_any(text, repairs()),
                .is_question = text.find('?') != std::string_view::npos || text.find("\xEF\xBC\x9F") != std::string_view::npos};
  wishes.delegates = wishes.makes && has_any(text, delegates());
  return wishes;
}

bool names_assistant(std::string_view sentence) { return has_any(sentence, assistants()); }
bool reports_failure(std::string_view sentence) { return has_any(sentence, reports()); }

}  // namespace belljar::guard
