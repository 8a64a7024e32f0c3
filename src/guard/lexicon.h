// Words that speak of an act, and names that give an act away: what turn.h judges by. Adding a language or a program is a row here.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "belljar/turn.h"

namespace belljar::guard {

// kIntention: only words that ask for the act when a user writes them; nouns and names of files do not.
enum class Speech { kAny, kIntention };

// The place where `text` (normalised: normal.h) from `from` on speaks of acts of this kind ("delete", "supprimer", "删除"); npos:
// nowhere.
std::size_t find_act_word(CallClass kind, std::string_view text, std::size_t from = 0, Speech speech = Speech::kAny) noexcept;

// kProtection: "certificate", "sign in", "limit". kDirection: words by which a text says what is to be done or what holds from now
// on: "must", "instead", "no longer", "please".
enum class Topic { kProtection, kDirection };
std::size_t find_topic_word(Topic topic, std::string_view text, std::size_t from = 0, Speech speech = Speech::kAny) noexcept;

// The kind of act that a tool's name stands for ("send_email", "deleteFile", "mcp__bank__transfer"); kRunning when nothing is known
// of it.
CallClass class_of_tool(std::string_view name) noexcept;

// Keys, credentials, the environment: `~/.ssh/id_rsa`, `.env`, `/etc/shadow`. By name; relative and absolute.
bool is_secret_path(std::string_view path) noexcept;
// Names of which a file is a secret wherever it lies: `.env`, `id_rsa`.
std::span<const std::string_view> secret_names() noexcept;
// Files that make a later step run something or steer it: `.bashrc`, `.git/hooks/x`, `.github/workflows/ci.yml`, `CLAUDE.md`.
bool is_persistent_path(std::string_view path) noexcept;
// Files that give rights: `/etc/sudoers`, `authorized_keys`.
bool is_privilege_path(std::string_view path) noexcept;
// Files that are run, built or served.
bool is_code_path(std::string_view path) noexcept;

}  // namespace belljar::guard
