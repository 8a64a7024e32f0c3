// belljar policy import FILE
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/guard/commands.h"
#include "cli/load.h"
#include "guard/foreign.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

struct ImportFlags {
  std::string file, part = "policy";
  std::vector<std::string> without;
  bool json = false;
};

constexpr std::string_view kOff =
    "the settings have no sandbox, since `enabled` is not true in them: with this policy commands run with all rights of their "
    "user";

std::string as_json(const guard::Imported& imported) {
  std::string fields;
  for (const guard::Field& field : imported.fields)
    fields +=
        format(R"({}{{"field":{},"fate":"{}","detail":{},"note":{}}})", fields.empty() ? "" : ",", policy::json_text(field.name),
               guard::to_string(field.treatment), policy::json_text(field.detail), policy::json_text(field.note));
  return format(R"({{"dialect":"{}","policy":{},"permission":{},"fields":[{}]}})", guard::to_string(imported.dialect),
                policy::json_text(guard::to_policy_file(imported)),
                policy::json_text(imported.has_permission ? guard::to_toml(imported.permission) : ""), fields) +
         "\n";
}

// What is not in the printed part is said on stderr.
void tell(const guard::Imported& imported) {
  for (const guard::Field& field : imported.fields) {
    if (field.treatment == guard::Field::Treatment::kRefused)
      print_note(format("given up: `{}`: {}", escaped(field.name), field.detail));
    else if (field.treatment == guard::Field::Treatment::kNotNeeded)
      print_note(format("nothing to do: `{}`: {}", escaped(field.name), field.detail));
    else if (field.treatment == guard::Field::Treatment::kOther)
      print_note(format("not imported: `{}` {}", escaped(field.name), field.detail));
    else if (!field.note.empty()) print_note(format("`{}`: {}", escaped(field.name), field.note));
  }
  if (imported.is_off) print_note(format("warning: {}", kOff));
}

int import_file(const ImportFlags& flags) {
  auto text = read_text_file(flags.file, "the settings");
  if (!text) return print_error(text.error());
  auto imported = guard::import_settings(*text, flags.file, flags.without);
  if (!imported) return print_error(imported.error());
  if (flags.json) return print_result(as_json(*imported));
  tell(*imported);
  const std::string head = format("# Imported from {} ({}).\n", escaped(flags.file), guard::to_string(imported->dialect));
  const std::string off = imported->is_off ? format("# {}.\n", kOff) : "";
  return print_result(head + off +
                      (flags.part == "permission" ? guard::to_toml(imported->permission) : guard::to_policy_file(*imported)));
}

}  // namespace

void add_policy_import(const OptionParser& app, int& exit_code) {
  const OptionParser group = app.add_subcommand("policy", "The part of `belljar policy` that this program does");
  group.require_subcommand();
  const auto flags = std::make_shared<ImportFlags>();
  const OptionParser command =
      group.add_subcommand("import",
                           "Settings of Blade or Claude (SandboxSettings JSON), srt or Codex (config.toml) as a "
                           "policy. A field that cannot be honoured is refused by name");
  command.add_option("FILE", flags->file, "*.toml is Codex; JSON is told apart by its fields").required();
  command
      .add_option("--part", flags->part,
                  "policy (default): all of it as one file for --policy; permission: the table of a rules file")
      .one_of({"policy", "permission"});
  command.add_option("--without", flags->without, "A refused field to give up").repeatable().type_name("FIELD");
  command.add_flag("--json", flags->json, "Both parts and the fate of each field as one JSON object");
  command.callback([flags, &exit_code] { exit_code = import_file(*flags); });
}

}  // namespace belljar::cli
