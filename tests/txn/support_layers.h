// Transactions without a sandbox: layers written by hand as overlayfs would, and the trees that came of them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "belljar/txn.h"
#include "support/temp_dir.h"

namespace belljar::test {

// A workspace and a state directory; `state_base` may lie on another file system.
class Workbench {
 public:
  // The layers lie below `state_base`, or `base`, or where that is on overlayfs elsewhere.
  explicit Workbench(const std::string& base, const std::string& state_base = {});

  const txn::Place& place() const { return place_; }
  std::string ws(const std::string& name = {}) const;
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) const;

  // Begins a run in the transaction, lets `work` write into its top layer (a path), ends the run.
  void in_layer(const std::function<void(const std::string& up)>& work, const std::string& name = "default") const;
  static void put(const std::string& up, const std::string& name, const std::string& text, mode_t mode = 0644);
  static void white_out(const std::string& up, const std::string& name);
  static void make_dir(const std::string& up, const std::string& name, bool opaque = false);

  // The workspace: path -> type, mode, size, content.
  std::map<std::string, std::string> tree() const;
  // diff(), a line each: "A path".
  std::string changes(const std::string& name = "default") const;

 private:
  TempDir workspace_, state_;
  txn::Place place_;
};

}  // namespace belljar::test
