// belljar audit: show, verify or export the trail of `run --audit`.
//
// Verifying goes through the whole chain of hashes and names each place where it breaks, by file, line and
// byte. A record at the end whose writer was killed is not damage: the next writer mends it. Whoever noted
// the head of the chain elsewhere gives it with --head, which finds what the file alone cannot show, that the
// end was cut off.
//
// Showing does not verify. A line that is no record is printed as damaged, so that a reader sees the rest.

#include "belljar/audit.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): strptime and timegm are POSIX's

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/full/components.h"

namespace belljar::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AuditCommandFlags {
  std::string file, head, kind, since, format = "jsonl";
  std::size_t last = 0;
  bool json = false;
};

Json json_of(const AuditVerification& found) {
  Json problems = Json::array();
  for (const AuditProblem& problem : found.problems) {
    problems.push_back({{"file", escaped(problem.file)},
                        {"line", problem.line},
                        {"offset", problem.offset},
                        {"seq", problem.sequence},
                        {"what", problem.what}});
  }
  return {{"intact", found.intact()},         {"records", found.records},       {"first", found.first_sequence},
          {"head", to_string(found.head)},    {"torn_bytes", found.torn_bytes}, {"mended", found.mended},
          {"clock_jumps", found.clock_jumps}, {"files", found.files},           {"problems", std::move(problems)}};
}

std::string in_words(const AuditVerification& found) {
  std::string text;
  for (const AuditProblem& problem : found.problems)
    text += format("damaged: {} line {} (byte {}, record {}): {}\n", belljar::quoted(problem.file), problem.line, problem.offset,
                   problem.sequence, problem.what);
  if (found.first_sequence > 0 && found.intact())
    text += format("records before {} were deleted by rotation\n", found.first_sequence);
  if (found.torn_bytes > 0)
    text += format("{} bytes at the end are of a record whose writer was killed; the next writer mends it\n", found.torn_bytes);
  if (found.mended > 0) text += format("{} times a writer was killed while it wrote a record\n", found.mended);
  if (found.clock_jumps > 0) text += format("{} jumps of the wall clock\n", found.clock_jumps);
  return text + format("{}: {} records in {} file{}\nhead {}\n", found.intact() ? "intact" : "damaged", found.records, found.files,
                       found.files == 1 ? "" : "s", to_string(found.head));
}

// As the time of a record begins: "2026-11-21T10:00:00.5", of a date alone its midnight. Errors: kInvalidArgument, no such time.
Result<std::string> parse_since(const std::string& text) {
  for (const char* const form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"}) {
    std::tm time{};
    const char* const behind = ::strptime(text.c_str(), form, &time);
    if (behind == nullptr) continue;
    std::string_view fraction = behind;
    if (fraction.ends_with('Z')) fraction.remove_suffix(1);
    if (!fraction.empty() && (fraction[0] != '.' || fraction.find_first_not_of("0123456789", 1) != std::string_view::npos))
      continue;
    std::tm normal = time;
    ::timegm(&normal);  // 30 February is 2 March
    char begin[32];
    if (normal.tm_mday != time.tm_mday || std::strftime(begin, sizeof begin, "%Y-%m-%dT%H:%M:%S", &time) == 0) continue;
    return begin + std::string(fraction);
  }
  return Error(Code::kInvalidArgument, format("{} is no time", belljar::quoted(text))).next("--since 2026-11-21T10:00:00, in UTC");
}

int verify(const AuditCommandFlags& flags) {
  std::optional<AuditHead> head;
  if (!flags.head.empty()) {
    auto parsed = parse_audit_head(flags.head);
    if (!parsed) return print_error(parsed.error());
    head = *std::move(parsed);
  }
  const auto found = verify_audit(flags.file, head);
  if (!found) return print_error(found.error());
  if (const int failed = print_result(flags.json ? json_of(*found).dump() + "\n" : in_words(*found)); failed != 0) return failed;
  return found->intact() ? 0 : 1;
}

// What may be wanted of a record; a line that is no JSON has none.
struct Record {
  std::string line;
  Json object;
};

Result<int> for_each(const AuditCommandFlags& flags, const std::function<bool(const Record&)>& each) {
  const std::string since = flags.since.empty() ? "" : BELLJAR_TRY(parse_since(flags.since));
  BELLJAR_CHECK(read_audit(flags.file, [&](std::string_view line) {
    Record record{std::string(line), Json::parse(line, nullptr, /*allow_exceptions=*/false)};
    const bool whole = record.object.is_object();
    if (!flags.kind.empty() && (!whole || !record.object.value("kind", "").starts_with(flags.kind))) return true;
    if (!since.empty() && (!whole || record.object.value("time", "") < since)) return true;
    return each(record);
  }));
  return 0;
}

std::string in_words(const Record& record) {
  const Json& object = record.object;
  if (!object.is_object() || !object.contains("data") || !object["data"].is_object())
    return format("{:>6}  damaged: {}\n", "?", belljar::quoted(record.line.substr(0, 200)));
  std::string text =
      format("{:>6}  {}  {:<12}", object.value("seq", 0ULL), escaped(object.value("time", "")), escaped(object.value("kind", "")));
  for (const auto& [name, value] : object["data"].items())
    text += format("  {}={}", escaped(name), value.is_string() ? belljar::quoted(value.get<std::string>()) : escaped(value.dump()));
  return text + "\n";
}

int show(const AuditCommandFlags& flags) {
  std::deque<std::string> kept;
  int failed = 0;
  const auto read = for_each(flags, [&](const Record& record) {
    std::string text = flags.json ? record.line + "\n" : in_words(record);
    if (flags.last == 0) return (failed = print_result(text)) == 0;
    kept.push_back(std::move(text));
    if (kept.size() > flags.last) kept.pop_front();
    return true;
  });
  if (!read) return print_error(read.error());
  for (const std::string& text : kept) {
    if (failed == 0) failed = print_result(text);
  }
  return failed;
}

// RFC 4180.
std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

int export_all(const AuditCommandFlags& flags) {
  const bool csv = flags.format == "csv";
  if (!csv && flags.format != "jsonl")
    return print_error(Error(Code::kInvalidArgument, format("there is no format {}", belljar::quoted(flags.format)))
                           .next("--format jsonl, or --format csv"));
  if (!flags.since.empty()) {
    if (const auto since = parse_since(flags.since); !since) return print_error(since.error());
  }
  // Damaged records are exported as what they are: not at all. The exit code says so.
  const auto found = verify_audit(flags.file);
  if (!found) return print_error(found.error());
  for (const AuditProblem& problem : found->problems)
    print_note(format("damaged: {} line {}: {}", belljar::quoted(problem.file), problem.line, problem.what));
  int failed = csv ? print_result("seq,time,pid,kind,data\r\n") : 0;
  const auto read = for_each(flags, [&](const Record& record) {
    const Json& object = record.object;
    if (!object.is_object() || !object.contains("data")) return true;
    Json plain = {{"seq", object.value("seq", 0ULL)},
                  {"time", object.value("time", "")},
                  {"pid", object.value("pid", 0)},
                  {"kind", object.value("kind", "")},
                  {"data", object["data"]}};
    failed = print_result(csv ? format("{},{},{},{},{}\r\n", plain["seq"].dump(), csv_field(object.value("time", "")),
                                       plain["pid"].dump(), csv_field(object.value("kind", "")), csv_field(object["data"].dump()))
                              : plain.dump() + "\n");
    return failed == 0;
  });
  if (!read) return print_error(read.error());
  return failed != 0 ? failed : found->intact() ? 0 : 1;
}

void add_filters(const OptionParser& command, const std::shared_ptr<AuditCommandFlags>& flags) {
  command.add_option("FILE", flags->file, "The trail, as `belljar run --audit FILE` was given it").required();
  command.add_option("--kind", flags->kind, "Only records whose kind begins so: run, run.end, violation, egress").type_name("KIND");
  command.add_option("--since", flags->since, "Only records from this time on (UTC): 2026-11-21T10:00:00").type_name("TIME");
}

void add_audit(const OptionParser& app, int& exit_code) {
  const OptionParser group = app.add_subcommand("audit", "Read and verify the audit trail that `belljar run --audit FILE` writes");
  group.require_subcommand();
  const auto flags = std::make_shared<AuditCommandFlags>();
  const OptionParser showing = group.add_subcommand("show", "The records, a line each");
  add_filters(showing, flags);
  showing.add_option("--last", flags->last, "Only the last N of them").type_name("N").between(1, 1'000'000'000);
  showing.add_flag("--json", flags->json, "As they stand in the file");
  showing.callback([flags, &exit_code] { exit_code = show(*flags); });
  const OptionParser verifying =
      group.add_subcommand("verify", "Find what was changed, removed, added or moved. Exit code 1: damaged");
  verifying.add_option("FILE", flags->file, "The trail; its rotated files are read as well").required();
  verifying
      .add_option("--head", flags->head,
                  "A head that was printed earlier: also finds an end that was cut off, and a trail "
                  "that was written anew")
      .type_name("NUMBER:HASH");
  verifying.add_flag("--json", flags->json, "As one JSON object");
  verifying.callback([flags, &exit_code] { exit_code = verify(*flags); });
  const OptionParser exporting =
      group.add_subcommand("export", "The records without the chain, for other programs. Exit code 1: damaged");
  add_filters(exporting, flags);
  exporting.add_option("--format", flags->format, "jsonl (default) or csv").type_name("FORMAT");
  exporting.callback([flags, &exit_code] { exit_code = export_all(*flags); });
}

}  // namespace

int read_audit_trail(int argc, char** argv) { return serve_commands(own_words(argc, argv), "the audit trail", add_audit); }

}  // namespace belljar::cli
