#include "txn/support_layers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "support/clock.h"
#include "support/leftovers.h"
#include "support/must.h"
#include "txn/base.h"
#include "txn/store.h"

namespace belljar::test {

Workbench::Workbench(const std::string& base, const std::string& state_base)
    : workspace_(base), state_(layers_base(state_base.empty() ? base : state_base)) {
  place_.workspace = workspace_.path();
  place_.state_dir = state_.path() + "/belljar";
}

std::string Workbench::ws(const std::string& name) const { return name.empty() ? workspace_.path() : workspace_ / name; }

void Workbench::write(const std::string& name, const std::string& text, mode_t mode) const { workspace_.write(name, text, mode); }

void Workbench::in_layer(const std::function<void(const std::string& up)>& work, const std::string& name) const {
  let_the_clock_tick();
  txn::Place place = place_;
  place.name = name;
  auto transaction = txn::Transaction::open(place, txn::Store::Open::kCreate, txn::Access::kChange);
  ASSERT_TRUE(transaction) << transaction.error().line();
  const auto layers = txn::begin_run(*transaction);
  ASSERT_TRUE(layers) << layers.error().line();
  let_the_clock_tick();
  work(format("{}/{}/up", layers->pool, layers->upper));
  const auto noted = txn::observe(*transaction);
  ASSERT_TRUE(noted) << noted.error().line();
}

void Workbench::put(const std::string& up, const std::string& name, const std::string& text, mode_t mode) {
  const std::filesystem::path path = up + "/" + name;
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::remove(path);
  std::ofstream(path) << text;
  must(::chmod(path.c_str(), mode));
}

void Workbench::white_out(const std::string& up, const std::string& name) {
  const std::filesystem::path path = up + "/" + name;
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::remove_all(path);
  must(::mknod(path.c_str(), S_IFCHR, makedev(0, 0)));
}

void Workbench::make_dir(const std::string& up, const std::string& name, bool opaque) {
  const std::string path = up + "/" + name;
  std::filesystem::create_directories(path);
  if (opaque) must(::setxattr(path.c_str(), "user.overlay.opaque", "y", 1, 0));
}

std::map<std::string, std::string> Workbench::tree() const {
  std::map<std::string, std::string> tree;
  for (auto& [path, text] : describe_tree(workspace_.path())) tree["." + path.substr(workspace_.path().size())] = text;
  return tree;
}

std::string Workbench::changes(const std::string& name) const {
  txn::Place place = place_;
  place.name = name;
  const auto all = txn::diff(place);
  if (!all) return all.error().line();
  std::string text;
  constexpr char kLetters[] = {'A', 'M', 'D', 'R'};
  for (const txn::Change& change : *all) {
    text += kLetters[static_cast<std::size_t>(change.kind)];
    text += " " + (change.from.empty() ? "" : change.from + ">") + change.path + "\n";
  }
  return text;
}

}  // namespace belljar::test
