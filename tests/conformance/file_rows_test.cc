// Rows about which paths and patterns mean what, and which file calls are refused with which code.
#include <string>
#include <vector>

#include "conformance/rows.h"
#include "support/identity.h"

namespace belljar {
namespace {

// The code of a refusal; unset: it was done.
template <class T>
std::optional<Code> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code());
}

std::vector<std::string> found(Sandbox& sandbox, const std::string& pattern) {
  std::vector<std::string> paths;
  const auto result = sandbox.glob(pattern);
  if (!result) return {result.error().line()};
  for (const FileInfo& info : result->files) paths.push_back(info.path);
  return paths;
}

using Paths = std::vector<std::string>;

Outcome known_by_its_name(const Bench& bench) {
  if (bench.named.empty()) return Outcome::kNotApplicable;
  Sandbox& sandbox = *bench.sandbox;
  EXPECT_TRUE(sandbox.write_file(bench.named + "/l/x", "1"));
  EXPECT_EQ(sandbox.read_file("l/x").value(), "1");
  EXPECT_EQ(sandbox.read_file(sandbox.workspace() + "/l/x").value(), "1");
  EXPECT_EQ(sandbox.list(bench.named)->size(), 1U);
  EXPECT_EQ(sandbox.stat(bench.named + "/./l//x")->path, bench.named + "/./l//x");
  EXPECT_EQ(found(sandbox, bench.named + "/l/*"), Paths{"l/x"});
  EXPECT_TRUE(sandbox.exec(Command{.argv = {"true"}, .cwd = bench.named + "/l"}));
  expect_escape(sandbox.read_file(bench.named + "2/x"), bench.named + "2/x");
  expect_escape(sandbox.read_file(bench.named + "/../x"), bench.named + "/../x");
  EXPECT_EQ(code_of(sandbox.exec(Command{.argv = {"true"}, .cwd = bench.named + "2"})), Code::kInvalidArgument);
  return Outcome::kSame;
}

Outcome patterns(const Bench& bench) {
  Sandbox& sandbox = *bench.sandbox;
  EXPECT_TRUE(sandbox.write_file("p/^a", "word\n"));
  EXPECT_TRUE(sandbox.write_file("p/b", "word\n"));
  const Paths both = {"p/^a", "p/b"};
  for (const char* pattern : {"p/*", "./p/*", "p/./*", "p//*", "**/p/*", "p/[!c]*"})
    EXPECT_EQ(found(sandbox, pattern), both) << pattern;
  EXPECT_EQ(found(sandbox, sandbox.workspace() + "/p/*"), both);
  EXPECT_EQ(found(sandbox, sandbox.workspace() + "/./p/*"), both);
  EXPECT_EQ(found(sandbox, "p/[a^]*"), Paths{"p/^a"});
  EXPECT_EQ(sandbox.grep("word", {.files = "./p/b"})->matches.size(), 1U);
  for (const char* pattern : {"../*", "p/../*", "/etc/*", "/*"}) {
    expect_escape(sandbox.glob(pattern), pattern);
    expect_escape(sandbox.grep("word", {.files = pattern}), pattern);
  }
  for (const std::string& pattern : {std::string(), std::string("["), std::string("{a,b}"), std::string("a\\b"),
                                     std::string("[^a]*"), std::string("[[:alpha:]]"), std::string("a\0b", 3)}) {
    EXPECT_EQ(code_of(sandbox.glob(pattern)), Code::kInvalidArgument) << pattern;
    EXPECT_EQ(code_of(sandbox.grep("word", {.files = pattern})), Code::kInvalidArgument) << pattern;
  }
  EXPECT_EQ(code_of(sandbox.grep("wo\nrd")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.grep("")), Code::kInvalidArgument);
  return Outcome::kSame;
}

Outcome renames(const Bench& bench) {
  if (bench.elsewhere) return Outcome::kNotApplicable;  // mv(1) of that machine decides
  Sandbox& sandbox = *bench.sandbox;
  EXPECT_TRUE(sandbox.write_file("d/x/f", "1"));
  EXPECT_TRUE(sandbox.write_file("full/g", "2"));
  EXPECT_TRUE(sandbox.write_file("file", "3"));
  EXPECT_TRUE(sandbox.make_dir("empty"));
  EXPECT_EQ(code_of(sandbox.rename("d/x", "d")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("d/x/f", "d")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("d", "full")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("d", "file")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("file", "empty")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("file", "file/y")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.rename("d", "d/x/y")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.rename("d", ".")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.rename("missing", "y")), Code::kNotFound);
  EXPECT_EQ(code_of(sandbox.rename("file", "missing/y")), Code::kNotFound);
  // Nothing was lost meanwhile; what makes sense is done.
  EXPECT_EQ(sandbox.read_file("d/x/f").value(), "1");
  EXPECT_EQ(sandbox.read_file("full/g").value(), "2");
  EXPECT_TRUE(sandbox.rename("file", "full/g"));
  EXPECT_EQ(sandbox.read_file("full/g").value(), "3");
  EXPECT_TRUE(sandbox.rename("d", "empty"));
  EXPECT_EQ(sandbox.read_file("empty/x/f").value(), "1");
  EXPECT_EQ(code_of(sandbox.stat("d")), Code::kNotFound);
  EXPECT_TRUE(sandbox.rename("empty", "empty"));
  EXPECT_EQ(sandbox.list("empty")->size(), 1U);
  return Outcome::kSame;
}

Outcome forms_of_paths(const Bench& bench) {
  if (bench.elsewhere) return Outcome::kNotApplicable;  // names are that machine's
  Sandbox& sandbox = *bench.sandbox;
  EXPECT_TRUE(sandbox.write_file("file", "x"));
  EXPECT_TRUE(sandbox.make_dir("d"));
  EXPECT_EQ(code_of(sandbox.write_file("q/.", "x")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.stat("q")), Code::kNotFound) << "a write that is refused leaves nothing";
  EXPECT_EQ(code_of(sandbox.write_file("d/..", "x")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.write_file("", "x")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.write_file("file/y", "x")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.write_file("q/y", "x", {.parents = Parents::kMustExist})), Code::kNotFound);
  EXPECT_EQ(code_of(sandbox.remove("d/.")), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.read_file("file/")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.stat("file/y")), Code::kFailedPrecondition);
  EXPECT_EQ(code_of(sandbox.read_file("missing/../file")), Code::kNotFound);
  EXPECT_EQ(sandbox.read_file("d/../file").value(), "x");
  EXPECT_EQ(sandbox.stat("d/.")->type, FileType::kDirectory);
  EXPECT_EQ(code_of(sandbox.make_dir(".", {.parents = Parents::kMustExist})), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.make_dir("file")), Code::kFailedPrecondition);
  EXPECT_TRUE(sandbox.make_dir("m7/../m8"));
  EXPECT_EQ(sandbox.stat("m7")->type, FileType::kDirectory);
  EXPECT_EQ(sandbox.stat("m8")->type, FileType::kDirectory);
  EXPECT_EQ(code_of(sandbox.exec(Command{.argv = {"true"}, .cwd = "file"})), Code::kFailedPrecondition);
  EXPECT_TRUE(sandbox.exec(Command{.argv = {"true"}, .cwd = "d/../d"}));
  EXPECT_TRUE(sandbox.remove("d/"));
  return Outcome::kSame;
}

Outcome modes(const Bench& bench) {
  if (bench.elsewhere) return Outcome::kNotApplicable;  // who one is there decides
  Sandbox& sandbox = *bench.sandbox;
  EXPECT_EQ(code_of(sandbox.make_dir("s", {.mode = 02755})), Code::kInvalidArgument);
  EXPECT_EQ(code_of(sandbox.stat("s")), Code::kNotFound);
  EXPECT_TRUE(sandbox.make_dir("m/n", {.mode = 0710}));
  EXPECT_EQ(sandbox.stat("m/n")->mode, 0710U);
  EXPECT_TRUE(sandbox.write_file("ro", "old", {.mode = 0400}));
  const auto over = sandbox.write_file("ro", "new");
  if (over && test::is_root()) return Outcome::kNotApplicable;  // nobody lent an identity
  EXPECT_EQ(code_of(over), Code::kPermissionDenied);
  EXPECT_EQ(code_of(sandbox.write_file("ro", "new", {.how = WriteMode::kAppend})), Code::kPermissionDenied);
  EXPECT_EQ(sandbox.read_file("ro").value(), "old");
  EXPECT_TRUE(sandbox.write_file("ro", "new", {.how = WriteMode::kAtomic}));
  EXPECT_EQ(sandbox.read_file("ro").value(), "new");
  EXPECT_TRUE(sandbox.make_dir("closed", {.mode = 0500}));
  EXPECT_EQ(code_of(sandbox.write_file("closed/x", "x")), Code::kPermissionDenied);
  EXPECT_TRUE(sandbox.write_file("secret", "x", {.mode = 0200}));
  EXPECT_EQ(code_of(sandbox.read_file("secret")), Code::kPermissionDenied);
  EXPECT_TRUE(sandbox.write_file("secret", "y"));
  return Outcome::kSame;
}

}  // namespace

std::vector<Row> file_rows() {
  return {{"files: known by the name that was given", false, known_by_its_name},
          {"files: patterns", false, patterns},
          {"files: what rename refuses", false, renames},
          {"files: forms of paths", false, forms_of_paths},
          {"files: permission bits", false, modes}};
}

}  // namespace belljar
