// The words, phrases and combinations of the detector. A word stands in the file of its language (words/), what words mean together
// in a row of patterns.cc, and a spelling that says enough by itself in a row of phrases.cc; tests/detect/corpus measures what a
// row does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace belljar::detect {

// What a word can be in a sign; a word may be several.
using Roles = std::uint64_t;
constexpr Roles role(unsigned bit) noexcept { return Roles{1} << bit; }

constexpr Roles kDrop = role(0);        // ignore, disregard, forget
constexpr Roles kEarlier = role(1);     // previous, all, above, system
constexpr Roles kOrders = role(2);      // instructions, rules, prompt
constexpr Roles kSend = role(3);        // send, upload, forward
constexpr Roles kSecret = role(4);      // password, token, key, credentials
constexpr Roles kReveal = role(5);      // reveal, print, repeat
constexpr Roles kPrompt = role(6);      // prompt
constexpr Roles kModel = role(7);       // assistant, agent, model, bot: also of people and of other things
constexpr Roles kAi = role(8);          // ai, llm, chatbot: nothing else
constexpr Roles kHide = role(9);        // mention, tell, inform: after a negation
constexpr Roles kNot = role(10);        // not, never, without
constexpr Roles kPerson = role(11);     // user, anyone, human
constexpr Roles kAct = role(12);        // run, delete, add: as an order
constexpr Roles kTarget = role(13);     // command, files, repository
constexpr Roles kMust = role(14);       // must, should, have to
constexpr Roles kTalk = role(15);       // attack, injection, vulnerability: the text talks about it
constexpr Roles kReply = role(16);      // answer, summary, report
constexpr Roles kYou = role(17);        // you, your
constexpr Roles kLead = role(18);       // please, and, then: what stands before an order
constexpr Roles kOff = role(19);        // disable, skip
constexpr Roles kGuarding = role(20);   // sandbox, confirmation, checks
constexpr Roles kPay = role(21);        // pay, transfer, book
constexpr Roles kFunds = role(22);      // balance, card, insurance
constexpr Roles kTool = role(23);       // tool, function
constexpr Roles kLater = role(24);      // future, every, next
constexpr Roles kSession = role(25);    // session, conversation
constexpr Roles kRead = role(26);       // reading, processing, analysing
constexpr Roles kThis = role(27);       // this page, file, text
constexpr Roles kLanguage = role(28);   // beside kModel: a language model, a coding agent
constexpr Roles kPretend = role(29);    // pretend, imagine, act as
constexpr Roles kLimits = role(30);     // limits, restrictions, filters
constexpr Roles kGot = role(31);        // told, received, given
constexpr Roles kFollow = role(32);     // follow, obey, do
constexpr Roles kApprove = role(33);    // approved, authorized; approve
constexpr Roles kOffice = role(34);     // administrator, operator, developer, system
constexpr Roles kAsk = role(35);        // ask, question
constexpr Roles kStore = role(36);      // rules files, crontab
constexpr Roles kMd = role(37);         // md, after a name: a rules file
constexpr Roles kSelf = role(38);       // yourself
constexpr Roles kNeed = role(39);       // required, needed
constexpr Roles kVoid = role(40);       // void, cancelled
constexpr Roles kTransform = role(41);  // translate, decode
constexpr Roles kImage = role(42);      // image, picture
constexpr Roles kSwap = role(43);       // replace, insert
constexpr Roles kHaul = role(44);       // conversation, mails, inbox: what is not for others
constexpr Roles kOmit = role(45);       // leave out, hide
constexpr Roles kNotice = role(46);     // note, message, meant: for whom?
constexpr Roles kStored = role(47);     // stored, saved
constexpr Roles kBefore = role(48);     // before, first
constexpr Roles kPolicy = role(49);     // policy, update
constexpr Roles kRights = role(50);     // rights, permissions, root
constexpr Roles kSays = role(51);       // adds, says, wants
constexpr Roles kTask = role(52);       // task, step, goal
constexpr Roles kRemember = role(53);   // remember, save
constexpr Roles kQuiet = role(54);      // quietly, secretly
constexpr Roles kNow = role(55);        // now, immediately
constexpr Roles kWhen = role(56);       // when, if
constexpr Roles kInvoke = role(57);     // call, invoke
constexpr Roles kWithout = role(58);    // without
constexpr Roles kTo = role(59);         // to, for, all: before whom it is for
constexpr Roles kHanded = role(60);     // 把, 将: what is done to what follows
constexpr Roles kLed = role(61);        // not of the word: one of kLead stood right before it
constexpr Roles kMemory = role(62);     // memory
constexpr Roles kAnyAct = kAct | kDrop | kSend | kReveal | kOff | kPay | kFollow | kTransform | kOmit | kRemember;

// "drop" for kDrop and so on, as the lists of words and the weights have it.
std::string_view name_of_role(unsigned bit) noexcept;
// Its bit; 64: there is none of that name.
unsigned role_named(std::string_view name) noexcept;

// What of `text` stands before `end`, which is taken off it as well: how the rows of data are read.
std::string_view cut(std::string_view& text, char end) noexcept;

// Each file of words/, a language each. A row is "ROLE ROLE: word word", and a line that begins with a blank belongs to the row
// before. Words are normalised (normal.h) and stand between blanks; a trailing `*` takes any ending; Chinese ones stand inside
// other text. Orders are in the form a stranger would give them to a machine: where a language has one, the familiar imperative,
// which descriptions seldom use. Behind a line "weighed" are words for the model alone.
std::span<const std::string_view> word_lists() noexcept;

struct Phrase {
  std::string_view text;  // normalised
  std::string_view sign;
  int weight;
};
// Found anywhere, as they stand.
std::span<const Phrase> phrases() noexcept;

// Words of these roles in this order in one sentence, each at most `gap` words after the one before.
struct Pattern {
  std::string_view sign;
  int ordered;  // weight when the first is spoken as an order
  int told;     // and when it is not; 0: then it is nothing
  int gap;
  Roles roles[4];
  // An address of somebody else close by; that, and an order to the reader; a colon on the way, behind the second word, or none.
  enum class Needs { kNothing, kDestination, kSink, kColon, kColonBehind, kNoColon } needs = Needs::kNothing;
};
std::span<const Pattern> patterns() noexcept;

}  // namespace belljar::detect
