// The file calls of a sandbox whose files this machine has: judged and made by Files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/sandbox.h"
#include "session/files.h"

namespace belljar::session {

class OverFiles : public Sandbox {
 public:
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options.call));
    return in_use->read(BELLJAR_TRY(on_host(path)), options);
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options.call));
    const std::string named = BELLJAR_TRY(on_host(path));
    BELLJAR_CHECK(in_use->write(named, bytes, options));
    written_ += bytes.size();
    return {};
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options));
    return in_use->list(BELLJAR_TRY(on_host(path)), options);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options));
    const std::string named = BELLJAR_TRY(on_host(path));
    FileInfo info = BELLJAR_TRY(in_use->stat(named, options));
    info.path = path;
    return info;
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options.call));
    return in_use->make_dir(BELLJAR_TRY(on_host(path)), options);
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options));
    const std::string source = BELLJAR_TRY(on_host(from));
    return in_use->rename(source, BELLJAR_TRY(on_host(to)), options);
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    const auto in_use = BELLJAR_TRY(files(options.call));
    return in_use->remove(BELLJAR_TRY(on_host(path)), options);
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    const auto in_use = BELLJAR_TRY(files({}));
    return in_use->glob(BELLJAR_TRY(on_host(pattern)), options);
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    const auto in_use = BELLJAR_TRY(files({}));
    GrepOptions there = options;
    there.files = BELLJAR_TRY(on_host(options.files));
    return in_use->grep(text, there);
  }

 protected:
  // The sandbox counts as in use for as long as somebody holds them. Errors: it does not run; as CallOptions::check.
  virtual Result<std::shared_ptr<const Files>> files(const CallOptions& options) const = 0;
  // A caller's path as Files know it.
  virtual Result<std::string> on_host(const std::string& path) const { return path; }

  std::atomic<std::uint64_t> written_{0};
};

}  // namespace belljar::session
