// A document of TOML or JSON as a layer: each key looked up in the schema, its value read by the key's type.
//
// Both formats come as the same tree of nodes with positions, so nothing below knows which it was, and every
// error can show the line. Without `all_` the first error ends the reading. With it, every error is collected
// and the setting that has it left out, for `policy check`.
#include "policy/parse.h"

#include <algorithm>

#include "base/format.h"
#include "policy/document.h"
#include "policy/names.h"
#include "policy/paths.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// Reads one document into one layer.
class Reader {
 public:
  // `all`: every error goes there and what it is about is left out; null: the first one ends the reading.
  Reader(const Source& source, std::string_view layer_name, std::vector<Error>* all = nullptr) : source_(source), all_(all) {
    layer_.name = layer_name;
  }

  Result<Layer> read(const Node& root) {
    if (root.kind != Node::Kind::kTable) return wrong(root, "a policy", "a table of keys");
    for (const Member& member : root.members) {
      if (is_table(member.key)) BELLJAR_CHECK(table(member));
      else BELLJAR_CHECK(collected(key(member, member.key)));
    }
    BELLJAR_CHECK(collected(check_what_stays(root)));
    return std::move(layer_);
  }

 private:
  Result<void> collected(Result<void> done) const {
    if (done || all_ == nullptr) return done;
    all_->push_back(std::move(done).error());
    return {};
  }
  // An element of a list: read into `to`, or collected as an error.
  template <class T>
  Result<void> add_element(Result<T> element, std::vector<T>& to) const {
    if (!element) return collected(std::move(element).error());
    to.push_back(*std::move(element));
    return {};
  }

  Origin origin(Position at) const { return {layer_.name, std::string(source_.file), at.line}; }

  Error wrong(const Node& node, std::string_view what, std::string_view wanted) const {
    return error_at(source_, node.at, format("{} is {}", what, describe(node))).reason(format("expected {}", wanted));
  }
  // An error of the value itself, put at its place.
  Error placed(const Node& node, const Error& error) const {
    return error_at(source_, node.at, error.what()).reason(error.reason()).next(error.next());
  }

  Result<void> table(const Member& member) {
    if (member.value.kind != Node::Kind::kTable) return collected(wrong(member.value, quoted(member.key), "a table"));
    for (const Member& inner : member.value.members) BELLJAR_CHECK(collected(key(inner, member.key + "." + inner.key)));
    return {};
  }

  Result<void> key(const Member& member, const std::string& name) {
    if (const Key* known = find_key(name)) return setting(*known, member, Alias::How::kSame);
    if (const Alias* alias = find_alias(name)) return aliased(*alias, member);
    const std::string near = nearest_key(name);
    return error_at(source_, member.at, format("unknown key {}", quoted(name)))
        .reason("every key must be known, so that a mistyped rule is not dropped in silence")
        .next(near.empty() ? "run `belljar policy keys` for the list" : format("did you mean `{}`?", near));
  }

  // What stays is what a volume of one's own holds, or a temporary directory of the host's: without them nothing does.
  Result<void> check_what_stays(const Node& root) const {
    constexpr std::string_view kRestore = "restore_on_start", kVolume = "persistent_volume", kClean = "auto_clean_temp";
    const auto find = [&](std::string_view name) { return std::ranges::find(root.members, name, &Member::key); };
    const auto given = [&](const Key* key) {
      return std::ranges::find(layer_.settings, key, &Setting::key) != layer_.settings.end();
    };
    const auto clean = find(kClean);
    const bool stays = clean != root.members.end() && clean->value.kind == Node::Kind::kBool && !clean->value.flag;
    const bool shared = std::ranges::any_of(layer_.settings, [](const Setting& setting) {
      return setting.key == find_key("filesystem.tmp") && setting.value == Value(std::string("shared"));
    });
    if (stays && !shared && !given(find_key("filesystem.temp_dir")))
      return Error(not_offered({kClean, "", Alias::How::kRefused, "the private temporary directories always end with the sandbox"},
                               *clean))
          .next("take the key out, or name an existing directory of the host's, which keeps them: temp_dir = \"/DIRECTORY\"");
    const auto restore = find(kRestore);
    if (restore == root.members.end() || find(kVolume) != root.members.end()) return {};
    return error_at(source_, restore->at, format("key {} restores nothing", quoted(kRestore)))
        .reason("the file names no `persistent_volume`, whose content is what stays")
        .next("name one, or take the key out");
  }

  Result<void> aliased(const Alias& alias, const Member& member) {
    if (alias.how == Alias::How::kMustBeTrue) return must_be_true(alias, member);
    if (alias.how == Alias::How::kRefused) return not_offered(alias, member);
    return setting(*find_key(alias.key), member, alias.how);
  }

  Result<void> must_be_true(const Alias& alias, const Member& member) {
    if (member.value.kind != Node::Kind::kBool) return wrong(member.value, quoted(member.key), "true or false");
    if (!member.value.flag) return not_offered(alias, member);
    const Key* const key = find_key(alias.key);
    if (key == nullptr) return {};
    const auto said = std::ranges::find(layer_.settings, key, &Setting::key);
    if (said == layer_.settings.end()) return setting(*key, member, alias.how);
    if (said->value == Value(true)) return {};
    return error_at(source_, member.at, format("key {} says the opposite of line {}", quoted(member.key), said->origin.line))
        .reason(format("both mean `{}`", key->name))
        .next("take one of them out");
  }

  Error not_offered(const Alias& alias, const Member& member) const {
    return Error(Code::kUnimplemented,
                 error_at(source_, member.at, format("key {} is known and not offered", quoted(member.key))).what())
        .excerpt(error_at(source_, member.at, "").excerpt())
        .reason(std::string(alias.why))
        .next("take the key out");
  }

  Result<void> setting(const Key& known, const Member& member, Alias::How how) {
    for (Setting& other : layer_.settings) {
      if (other.key == &known && is_one_more(known, how)) return one_more(other, member, how);
      if (other.key == &known) {
        return error_at(source_, member.at, format("key `{}` is given twice", known.name))
            .reason(format("line {} says it already, maybe under another spelling", other.origin.line));
      }
    }
    Setting result{&known, {}, origin(member.at), {}};
    if (how == Alias::How::kOnlyThese) {
      // "variables allowed through" means no others, so the caller's are not inherited.
      layer_.settings.push_back({find_key("environment.inherit"), std::string("none"), result.origin, {}});
    }
    result.value = BELLJAR_TRY(value(known, member.value, how, result.items));
    layer_.settings.push_back(std::move(result));
    (how == Alias::How::kOneOf ? one_of_ : whole_).push_back(&known);
    return {};
  }

  // One name has given the whole list, and this is the first that gives one element of it, or the other way round.
  bool is_one_more(const Key& known, Alias::How how) const {
    const auto given = [&](const std::vector<const Key*>& keys) { return std::ranges::find(keys, &known) != keys.end(); };
    return how == Alias::How::kOneOf ? !given(one_of_) : given(one_of_) && !given(whole_);
  }

  Result<void> one_more(Setting& have, const Member& member, Alias::How how) {
    auto& texts = std::get<std::vector<std::string>>(have.value);
    (how == Alias::How::kOneOf ? one_of_ : whole_).push_back(have.key);
    std::vector<Origin> items;
    const Value more = BELLJAR_TRY(value(*have.key, member.value, how, items));
    const auto& added = std::get<std::vector<std::string>>(more);
    if (added.empty() || texts.empty())
      return error_at(source_, member.at, format("key `{}` is given twice", have.key->name))
          .reason("one says that the list is empty, and another name for an element of it says that it is not")
          .next("take one of them out");
    texts.insert(texts.end(), added.begin(), added.end());
    have.items.insert(have.items.end(), items.begin(), items.end());
    return {};
  }

  Result<Value> value(const Key& known, const Node& node, Alias::How how, std::vector<Origin>& items) {
    if (node.items.size() > kMaxElements || node.members.size() > kMaxElements) {
      return error_at(source_, node.at, format("`{}` has more than {} elements", known.name, kMaxElements));
    }
    if (how == Alias::How::kOneOf) {
      if (node.kind != Node::Kind::kText) return wrong(node, format("`{}`", known.name), "a path in quotes");
      BELLJAR_CHECK(check_word(known, node));
      items.push_back(origin(node.at));
      return Value(std::vector<std::string>{node.text});
    }
    switch (known.type) {
      case Type::kBool:
        if (node.kind != Node::Kind::kBool) break;
        return Value(node.flag);
      case Type::kNumber:
      case Type::kCount:
      case Type::kSize:
      case Type::kDuration:
        return quantity(known, node, how);
      case Type::kEnum:
        return word(known, node, how);
      case Type::kText:
      case Type::kPath:
        if (node.kind != Node::Kind::kText) break;
        BELLJAR_CHECK(check_word(known, node));
        return Value(node.text);
      case Type::kTexts:
      case Type::kPaths:
        return texts(known, node, items);
      case Type::kPorts:
        return ports(known, node);
      case Type::kMap:
        return map(known, node, items);
      case Type::kEntries:
        return entries(known, node);
      case Type::kVolumes:
        return volumes(known, node);
    }
    return wrong(node, format("`{}`", known.name), expected(known));
  }

  Result<Value> quantity(const Key& known, const Node& node, Alias::How how) const {
    const bool integer = node.kind == Node::Kind::kInteger, floating = node.kind == Node::Kind::kFloat;
    if (node.kind != Node::Kind::kText && !integer && !floating) return wrong(node, format("`{}`", known.name), expected(known));
    std::string text = integer ? format("{}", node.integer) : floating ? format("{}", node.number) : node.text;
    // In quotes or not, as the documents write them.
    const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
    if (bare && how == Alias::How::kMegabytes) text += "MiB";
    auto result = value_from_text(known, text);
    if (!result) return placed(node, result.error());
    return result;
  }

  Result<Value> word(const Key& known, const Node& node, Alias::How how) const {
    if (how == Alias::How::kNetworkBool) {
      if (node.kind != Node::Kind::kBool) return wrong(node, "`network_access`", "true or false");
      return Value(std::string(node.flag ? "host" : "none"));
    }
    if (how == Alias::How::kDocker) {
      if (node.kind != Node::Kind::kBool) return wrong(node, "`use_docker`", "true or false");
      return Value(std::string(node.flag ? "container" : "native"));
    }
    if (node.kind != Node::Kind::kText) return wrong(node, format("`{}`", known.name), known.values);
    if (how == Alias::How::kPullPolicy) {
      if (node.text == "Always") return Value(std::string("always"));
      if (node.text == "IfNotPresent") return Value(std::string("missing"));
      if (node.text == "Never") return Value(std::string("never"));
      return wrong(node, "`image_pull_policy`", "Always, IfNotPresent or Never");
    }
    if (how == Alias::How::kNetworkMode) {
      if (node.text == "full") return Value(std::string("host"));
      if (node.text == "restricted") return Value(std::string("proxy"));
      if (node.text == "none") return Value(std::string("none"));
      const std::string_view right = node.text == "limited" ? known_synonym(known.name, node.text) : std::string_view();
      return wrong(node, "`network_mode`", "full, restricted or none").next(std::string(right));
    }
    auto result = value_from_text(known, node.text);
    if (!result) return placed(node, result.error());
    return result;
  }

  // What no list element and no name may hold; the caret stands at the element.
  Result<void> check_word(const Key& known, const Node& node) const {
    auto checked = check_element(known, node.text);
    if (checked) return {};
    Error error = placed(node, checked.error());
    if (known.name == "network.upstream_proxy") return std::move(error).excerpt("");  // the line may hold a password
    return error;
  }

  Result<Value> texts(const Key& known, const Node& node, std::vector<Origin>& items) const {
    if (node.kind != Node::Kind::kList) return wrong(node, format("`{}`", known.name), expected(known));
    std::vector<std::string> result;
    for (const Node& item : node.items) {
      const bool text = item.kind == Node::Kind::kText;
      Result<void> checked =
          text ? check_word(known, item) : wrong(item, format("an element of `{}`", known.name), "text in quotes");
      const bool fine = checked.has_value();
      BELLJAR_CHECK(collected(std::move(checked)));
      if (!fine) continue;
      result.push_back(item.text);
      items.push_back(origin(item.at));
    }
    return Value(std::move(result));
  }

  Result<Value> ports(const Key& known, const Node& node) const {
    if (node.kind != Node::Kind::kList) return wrong(node, format("`{}`", known.name), expected(known));
    std::vector<PortPair> result;
    for (const Node& item : node.items) {
      const std::string text = item.kind == Node::Kind::kInteger ? format("{}", item.integer) : item.text;
      const auto pair = value_from_text(known, text);
      if (!pair || (item.kind != Node::Kind::kInteger && item.kind != Node::Kind::kText))
        return wrong(item, format("an element of `{}`", known.name), "a port from 1 to 65535, or \"HOST:INSIDE\"");
      result.push_back(std::get<std::vector<PortPair>>(*pair).front());
    }
    return Value(std::move(result));
  }

  Result<Value> map(const Key& known, const Node& node, std::vector<Origin>& items) const {
    if (node.kind != Node::Kind::kTable) return wrong(node, format("`{}`", known.name), expected(known));
    std::map<std::string, std::string> result;
    for (const Member& member : node.members) {
      auto name = check_variable(member.key);
      if (!name) return error_at(source_, member.at, name.error().what()).reason(name.error().reason());
      if (member.value.kind != Node::Kind::kText) return wrong(member.value, quoted(member.key), "text in quotes");
      if (member.value.text.find('\0') != std::string::npos) return wrong(member.value, quoted(member.key), "text without NUL");
      result.emplace(member.key, member.value.text);
    }
    for (const auto& [name, text] : result) {
      for (const Member& member : node.members) {
        if (member.key == name) items.push_back(origin(member.at));
      }
    }
    return Value(std::move(result));
  }

  Result<Value> entries(const Key& known, const Node& node) {
    if (node.kind != Node::Kind::kList) return wrong(node, format("`{}`", known.name), expected(known));
    std::vector<FsEntry> result;
    result.reserve(node.items.size());
    for (const Node& item : node.items) BELLJAR_CHECK(add_element(entry(item), result));
    return Value(std::move(result));
  }

  Result<FsEntry> entry(const Node& node) const {
    if (node.kind != Node::Kind::kTable) return wrong(node, "an entry", "a table {path or glob, access}");
    FsEntry result;
    const Node* access = nullptr;
    const Node* place = nullptr;
    for (const Member& member : node.members) {
      const bool glob = member.key == "glob";
      if (member.key != "path" && !glob && member.key != "access") {
        constexpr std::string_view kNamesHere[] = {"path", "glob", "access"};
        return unknown_here(member, kNamesHere);
      }
      if (member.value.kind != Node::Kind::kText) return wrong(member.value, quoted(member.key), "text in quotes");
      if (member.key == "access") {
        access = &member.value;
        continue;
      }
      if (place != nullptr) return error_at(source_, member.at, "an entry takes either `path` or `glob`, not both");
      place = &member.value;
      result.glob = glob;
    }
    if (place == nullptr) return error_at(source_, node.at, "an entry needs `path` or `glob`");
    if (access == nullptr) return error_at(source_, node.at, "an entry needs `access`").reason("it takes read, write or none");
    const auto known = value_of<Access>(access->text);
    if (!known) return wrong(*access, "`access`", "read, write or none");
    auto checked = result.glob ? check_glob(place->text) : check_path(place->text);
    if (!checked) return placed(*place, checked.error());
    result.path = place->text;
    result.access = *known;
    result.origin = origin(place->at);
    return result;
  }

  Error unknown_here(const Member& member, std::span<const std::string_view> names) const {
    const std::string_view near = nearest(member.key, names);
    std::string all;
    for (const std::string_view name : names) all += format("{}`{}`", all.empty() ? "" : ", ", name);
    return error_at(source_, member.at, format("unknown key {}", quoted(member.key)))
        .reason(format("here stand {}", all))
        .next(near.empty() ? "" : format("did you mean `{}`?", near));
  }

  Result<Value> volumes(const Key& known, const Node& node) const {
    if (node.kind != Node::Kind::kList) return wrong(node, format("`{}`", known.name), expected(known));
    std::vector<Volume> result;
    for (const Node& item : node.items) BELLJAR_CHECK(add_element(volume(item), result));
    return Value(std::move(result));
  }

  Result<Volume> volume(const Node& node) const {
    if (node.kind != Node::Kind::kTable) return wrong(node, "a volume", "a table {source, target, readonly}");
    Volume result;
    result.origin = origin(node.at);
    for (const Member& member : node.members) {
      constexpr std::string_view kNamesHere[] = {"source", "target", "readonly"};
      if (member.key == "readonly") {
        if (member.value.kind != Node::Kind::kBool) return wrong(member.value, "`readonly`", "true or false");
        result.readonly = member.value.flag;
        continue;
      }
      if (member.key != "source" && member.key != "target") return unknown_here(member, kNamesHere);
      if (member.value.kind != Node::Kind::kText) return wrong(member.value, quoted(member.key), "a path in quotes");
      auto checked = check_path(member.value.text);
      if (!checked) return placed(member.value, checked.error());
      (member.key == "source" ? result.source : result.target) = member.value.text;
    }
    if (result.source.empty()) return error_at(source_, node.at, "a volume needs `source`");
    if (result.target.empty()) result.target = result.source;
    return result;
  }

  Source source_;
  Layer layer_;
  std::vector<Error>* all_;
  std::vector<const Key*> whole_, one_of_;  // what has been read: keys as they are, lists by a name for one element
};

}  // namespace

Result<Layer> parse_toml(std::string_view text, std::string_view file, std::string_view layer_name) {
  const Source source{text, file};
  return Reader(source, layer_name).read(BELLJAR_TRY(parse_toml_document(source)));
}

Result<Layer> parse_json(std::string_view text, std::string_view file, std::string_view layer_name) {
  const Source source{text, file};
  return Reader(source, layer_name).read(BELLJAR_TRY(parse_json_document(source)));
}

Result<Layer> parse_policy(std::string_view text, std::string_view file, std::string_view layer_name) {
  return file.ends_with(".json") ? parse_json(text, file, layer_name) : parse_toml(text, file, layer_name);
}

Layer parse_all(std::string_view text, std::string_view file, std::string_view layer_name, std::vector<Error>& errors) {
  const Source source{text, file};
  const auto document = file.ends_with(".json") ? parse_json_document(source) : parse_toml_document(source);
  auto layer = document ? Reader(source, layer_name, &errors).read(*document) : Result<Layer>(document.error());
  if (layer) return *std::move(layer);
  errors.push_back(std::move(layer).error());
  return {.name = std::string(layer_name)};
}

}  // namespace belljar::policy
