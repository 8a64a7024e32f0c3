// A view while it is being planned: what is asked, what is shown, writable or private so far, and the questions that the steps
// (steps.h) put to both.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "policy/paths.h"

namespace belljar::backend {

struct ViewDraft {
  ViewDraft(const Host& the_host, const Policy& the_policy, const Workplace& the_place)
      : host(the_host), policy(the_policy), fs(the_policy.filesystem), place(the_place) {}

  // --- what is asked; it outlives the draft

  const Host& host;
  const Policy& policy;
  const Filesystem& fs;
  const Workplace& place;

  // --- what is planned so far

  PathPlan paths;
  std::vector<std::pair<std::string, const Volume*>> elsewhere;  // canonical sources of volumes that have another name inside
  std::vector<std::string> hidden_paths;                         // what check_volumes() looks for

  View& view() { return paths.view; }
  const View& view() const { return paths.view; }

  // --- of the host

  PathKind kind_of(const std::string& path) const { return host.facts(path).kind; }
  bool in_shown_home(const std::string& path) const { return !place.home.empty() && is_under(path, place.home); }

  // --- of what is planned so far

  bool writable(std::string_view path) const;
  bool is_private(std::string_view path) const;
  bool is_private_dir(std::string_view path) const;
  // Below a private directory, and nothing shows the host's there.
  bool out_of_sight(const std::string& path) const;
  // Shown from the host although a private directory lies above: a workspace below /tmp.
  bool bound(const std::string& path) const { return shown_by(path) != nullptr; }
  // Mounts are attached shallow first: the deepest bind is what is shown.
  const Bind* shown_by(std::string_view path) const;
  // The host's own name of what is shown at `path`.
  std::string behind(const std::string& path) const;
  // At or below the place of a volume that shows something else of the host there.
  const Volume* elsewhere_at(std::string_view path) const;

  // --- additions of more than one step

  // Shows the host's `path` where it is, read-only unless `access` is kWrite.
  void show(const std::string& path, Access access);
  // What can be written so far, at `path` and below, can only be seen.
  void add_readonly(const std::string& path);
  void add_gap(std::string clause, const std::string& what) { add_gap(std::move(clause), what, what); }
  void add_gap(std::string clause, std::string what, std::string where);
};

// /dev, /proc and the like have mounts of ours inside: no overlay there.
bool mounted_under(const std::string& path);
enum class HiddenBy { kEntry, kDefault };  // somebody's rule, or the built-in list of secrets
// Of what is shown in a hidden directory nothing can be: it is only read, or the directory holds the home, or a file in the
// workspace hides it.
Error inside_hidden(const FsEntry& entry, const std::string& hidden, HiddenBy by);

}  // namespace belljar::backend
