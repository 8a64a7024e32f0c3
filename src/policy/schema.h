// One table of every policy key. It drives the TOML and JSON parsers, the flags of `belljar run`, the suggestions for a wrong name,
// `policy explain`, what a project file may say, and the generated table of the documentation (`belljar policy keys`).
// To add a key: add the field to include/belljar/policy.h and one row to schema.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {

enum class Type {
  kBool,
  kNumber,    // 1.5
  kCount,     // a whole number
  kSize,      // 512MiB; a bare number is bytes
  kDuration,  // 30s; a bare number is seconds
  kEnum,      // one of Key::values
  kText,
  kPath,
  kTexts,  // list of text
  kPaths,  // list of paths
  kPorts,  // list of port numbers
  kMap,    // name -> text
  kEntries,
  kVolumes,
};

// How a layer's value joins what lower layers said.
enum class Join {
  kReplace,  // the higher layer's value stands
  kUnion,    // lists grow; an explicit empty list clears what lower layers said ("empty list means none")
  kEntries,  // file-system rules: appended; the same path again replaces the lower layer's rule
};

// What a layer from inside the workspace may do with the key. Everything not named here is an error there.
enum class Narrow {
  kNever,       // only repeat the value that is in force
  kStricter,    // move to an earlier value of Key::values (enums), or to Key::strict (booleans)
  kLower,       // numbers: the same or less; unset counts as unlimited
  kLowerOrSet,  // numbers where unset counts as zero: only the same or less
  kSubset,      // list of grants: each element must be granted already, and the list becomes the whole grant
  kMore,        // list of refusals or demands: may only grow
  kEntries,     // file-system rules that take something away
  kVariables,   // harmless variables that no other layer has set
};

// Where the value lives.
using Field = std::variant<bool*, std::optional<bool>*, double*, std::optional<double>*, std::optional<std::uint64_t>*, Bytes*,
                           std::optional<Bytes>*, std::chrono::milliseconds*, std::optional<std::chrono::milliseconds>*,
                           std::string*, std::optional<std::string>*, std::vector<std::string>*, std::vector<PortPair>*,
                           std::map<std::string, std::string>*, std::vector<Volume>*, std::vector<FsEntry>*, Mode*, Protect*,
                           Secrets*, Tmp*, Caches*, std::optional<Siblings>*, Inherit*, NetMode*, NetMethods*, OutputAction*,
                           Isolation*, std::optional<PullPolicy>*>;

struct Key {
  std::string_view name;       // dotted: "limits.memory"
  std::string_view flag = "";  // "--memory"; empty: no flag of `belljar run`
  Type type = Type::kText;
  std::string_view values = "";  // kEnum: "none|proxy|host", narrowest first
  Join join = Join::kReplace;
  Narrow narrow = Narrow::kNever;
  bool strict = false;  // Narrow::kStricter on a boolean: the narrower value
  Field (*field)(Policy&) = nullptr;
  std::string_view fallback = "";  // the default, as text
  std::string_view risk;           // what a wider value puts at risk
  std::string_view doc;            // one sentence
  // What the worst project file gets out of what `narrow` lets it say: the answer to "can a hostile workspace use this?". It must
  // never be more than that something is refused, missing or slower. "nothing: ..." where only a repetition passes.
  std::string_view hostile;
};

// Another spelling of a key, as the seed documents write it. Works exactly like the key it stands for, with its own unit.
struct Alias {
  enum class How {
    kSame,         // just another name
    kMegabytes,    // a bare number counts MiB
    kNetworkMode,  // full | restricted | none
    kNetworkBool,  // true: host, false: none
    kDocker,       // use_docker: true is the backend container, false native
    kPullPolicy,   // Always | IfNotPresent | Never
    kOneOf,        // one element of a list that other names of the file may fill, too
    kOnlyThese,    // env_whitelist: inherit nothing, include these
    kMustBeTrue,   // it sets `key`, if there is one; `false` is refused
    kRefused,      // known and not offered: `why` says so
  };
  std::string_view name;  // dotted, as it stands in the file
  std::string_view key;   // the key it sets
  How how = How::kSame;
  std::string_view why;
};

std::span<const Key> keys() noexcept;
std::span<const Alias> aliases() noexcept;
const Key* find_key(std::string_view name) noexcept;
const Alias* find_alias(std::string_view name) noexcept;
// Whether keys live below `name`: "limits" is a table.
bool is_table(std::string_view name) noexcept;

// The nearest name of `names` to what was written, or empty when none is near. Case, dashes and camelCase do not count.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> names);
// What to write here for a word that the documents or another tool have for it: "full-access" as a `mode`. `of`: a key, or "--" for
// an option. Empty: no such word.
std::string_view known_synonym(std::string_view of, std::string_view wrong);
// The nearest right key for a wrong dotted name ("limits.memmory" -> "limits.memory"; "memory" -> "limits.memory").
std::string nearest_key(std::string_view wrong);

// "a size such as 512MiB", for messages.
std::string_view expected(const Key& key) noexcept;
// Reads one value as a flag gives it. Lists take one element. Errors: kInvalidArgument with what was expected.
Result<Value> value_from_text(const Key& key, std::string_view text);

// Refuses 0 for limits.egress_bytes, egress_rate and egress_heads; other sizes pass. Errors: kInvalidArgument.
Result<void> check_amount(std::string_view key, Bytes size);
// Stores `value` (of the right alternative) in `policy`, as it is: joining is merge.cc's work.
void store(const Key& key, Policy& policy, const Value& value);
// Reads the field back; nullopt when it is unset.
std::optional<Value> load(const Key& key, const Policy& policy);
// Text of a value, as TOML writes it.
std::string to_toml(const Value& value);

// The table of all keys as markdown (`belljar policy keys`).
std::string keys_markdown();

}  // namespace belljar::policy
