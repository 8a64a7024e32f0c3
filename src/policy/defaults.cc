// What is hidden, protected, cached and passed when nobody says otherwise: tables, each entry with its
// reason.
//
// A name is listed if programs commonly keep keys there and go on without them. Hiding answers EACCES, and a
// tool that stops at an unreadable settings file would stop every command.
#include "policy/defaults.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "policy/agents.h"

namespace belljar::policy {
namespace {

// Below the home directory. Hiding answers EACCES, so a file that holds settings first and a token now and then is listed only when
// its tool goes on without it: npm and pip do (~/.npmrc, pip.conf); Maven, Gradle, Bundler, NuGet, Yarn and conda stop at an
// unreadable settings file, so ~/.m2/settings.xml, ~/.gradle/gradle.properties, ~/.bundle/config, NuGet.Config, ~/.yarnrc.yml and
// ~/.condarc stay readable. Who keeps tokens there adds them to blocked_paths. Each name costs every start 3 us (look-up,
// mask entry, its end): no entries on suspicion, and nothing that only one program in a thousand homes would have.
constexpr std::string_view kHomeSecrets[] = {
    // keys and agents
    ".ssh",
    ".gnupg",
    ".pki",
    ".age",
    ".password-store",
    ".config/age",
    ".config/sops",
    ".config/op",
    ".config/1Password",
    ".config/keepassxc",
    ".config/Bitwarden",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    // clouds and clusters
    ".aws",
    ".azure",
    ".oci",
    ".aliyun",
    ".boto",
    ".s3cfg",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".config/heroku",
    ".config/containers/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".pulumi/credentials.json",
    ".netlify",
    ".vercel",
    ".wrangler",
    ".supabase/access-token",
    ".databrickscfg",
    ".snowflake",
    // forges
    ".netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/github-copilot",
    // package registries
    ".npmrc",
    ".pypirc",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/pypoetry/auth.toml",
    ".config/uv/credentials.toml",
    ".local/share/uv/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings-security.xml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".kaggle",
    // databases, mail
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".msmtprc",
    ".thunderbird",
    ".local/share/evolution",
    // browsers and their like
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".local/share/TelegramDesktop",
    "snap/firefox/common",
    "snap/chromium/common",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".electrum",
    ".bitcoin",
    ".ethereum",
    ".config/solana",
    // histories: they hold pasted tokens
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    // desktop sessions
    ".Xauthority",
    ".ICEauthority",
    ".local/state/belljar",
};

// Of the system. Most need privilege anyway; the list counts where Belljar runs as root.
constexpr std::string_view kSystemSecrets[] = {
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/krb5.keytab",
    "/run/belljar",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/ipsec.secrets",
    "/etc/letsencrypt",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker/key.json",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/mysql/debian.cnf",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/cryptsetup-keys.d",
    // sockets that are as good as root, or hand out keys
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/k3s",
    "/run/libvirt",
    "/run/lxd.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/run/incus",
    "/run/snapd.socket",
    "/run/dbus/system_bus_socket",
    "/run/credentials",
    "/run/cryptsetup",
    "/run/secrets",
    "/run/pcscd",
    "/var/run/secrets",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/spool/cron",
    "/var/mail",
    "/var/spool/mail",
    "/var/backups",
};

constexpr std::string_view kRuntimeSecrets[] = {"keyring",    "belljar",          "gnupg", "bus",     "docker.sock", "podman",
                                                "containerd", "ssh-agent.socket", "gcr",   "p11-kit", "pipewire-0"};

constexpr std::string_view kCaches[] = {
    ".cache",
    ".npm",
    ".yarn/berry/cache",
    ".pnpm-store",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".node-gyp",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg/mod",
    ".m2/repository",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/daemon",
    ".gradle/native",
    ".ivy2/cache",
    ".sbt/boot",
    ".nuget/packages",
    ".local/share/NuGet",
    ".composer/cache",
    ".gem/specs",
    ".bundle/cache",
    ".hex/packages",
    ".cabal/packages",
    ".stack/pantry",
    ".ccache",
    ".conan2/p",
    ".conan/data",
    ".pub-cache",
    ".deno",
    ".julia/compiled",
    ".electron",
    ".terraform.d/plugin-cache",
};

// With the tool that reads the name and what it takes from there. A `*` stands for any text; at most one, in the last component.
// Sources: the tools' manuals, as named; "tried" where we saw a planted file run (tests/escape, tests/agent). What the interpreter
// of a language reads where it is started (.Rprofile, .pdbrc, .irbrc, .ghci, .ocamlinit, .iex.exs) is the project's own code, as
// its sources are, and not here.
constexpr ProtectedName kProtected[] = {
    // agents: settings, hooks, MCP servers to start, and words that count as the user's
    {".codex", "Codex", "config.toml: mcp_servers are started, notify is run"},
    {".agents", "Codex and others", "skills and instructions that are followed"},
    {".claude", "Claude Code", "settings.json: hooks are run (hooks reference); skills, agents, commands"},
    {".claude.json", "Claude Code", "mcpServers are started"},
    {".belljar", "Belljar", "policy.toml of the project"},
    {".mcp.json", "Claude Code and others", "mcpServers are started"},
    {".cursor", "Cursor", "mcp.json: servers are started; hooks.json; rules"},
    {".cursorrules", "Cursor", "instructions that are followed"},
    {".cursorignore", "Cursor", "what the agent may not see"},
    {".windsurf", "Windsurf", "rules, workflows"},
    {".windsurfrules", "Windsurf", "instructions that are followed"},
    {".gemini", "Gemini CLI", "settings.json: mcpServers and hooks are started"},
    {".qwen", "Qwen Code", "settings.json: mcpServers are started"},
    {".aider.conf.yml", "Aider", "lint-cmd and test-cmd are run"},
    {".continue", "Continue", "mcpServers are started; config.ts is run"},
    {".clinerules", "Cline", "instructions and hooks"},
    {".roo", "Roo Code", "mcp.json: servers are started; rules"},
    {".amazonq", "Amazon Q", "mcp.json: servers are started; rules"},
    {".kiro", "Kiro", "settings/mcp.json: servers are started; hooks"},
    {".opencode", "opencode", "plugin/*.js are loaded"},
    {"opencode.json", "opencode", "mcp servers and formatters are started"},
    {"opencode.jsonc", "opencode", "mcp servers and formatters are started"},
    {".trae", "Trae", "mcp.json: servers are started; rules"},
    {".junie", "Junie", "mcp.json: servers are started; guidelines"},
    {".augment", "Augment", "rules"},
    {"crush.json", "Crush", "mcp and lsp servers and hooks are started (docs/config, Where config lives)"},
    {".crush.json", "Crush", "as crush.json"},
    {"crushrc", "Crush", "run as shell text at the start (docs/config)"},
    {".crushrc", "Crush", "as crushrc"},
    {".factory", "Factory Droid", "hooks.json and settings.json: hooks are run; mcp.json (hooks reference)"},
    {".kilocode", "Kilo Code", "mcp.json: servers are started; rules (Using MCP in Kilo Code)"},
    {".kilo", "Kilo Code", "kilo.json, kilo.jsonc: mcp servers are started"},
    {"kilo.json", "Kilo Code", "mcp servers are started"},
    {"kilo.jsonc", "Kilo Code", "mcp servers are started"},
    {".github/copilot-instructions.md", "Copilot", "instructions that are followed"},
    {".github/hooks", "Copilot CLI", "*.json: hooks are run (CLI hooks reference)"},
    // editors
    {".vscode", "VS Code", "tasks.json may run when the folder opens; settings.json names programs"},
    {".idea", "JetBrains IDEs", "run configurations, file watchers, external tools"},
    {".zed", "Zed", "settings.json names language servers; tasks.json"},
    {".fleet", "Fleet", "run.json, settings.json"},
    {".helix", "Helix", "languages.toml: language servers and formatters are started (languages, book)"},
    {".devcontainer", "Dev Containers", "initializeCommand runs on the host"},
    {".devcontainer.json", "Dev Containers", "initializeCommand runs on the host"},
    {".nvim.lua", "Neovim", "run with 'exrc'"},
    {".nvimrc", "Neovim", "run with 'exrc'"},
    {".exrc", "vi, Vim", "run with 'exrc'"},
    {".vimrc", "Vim", "run with 'exrc'"},
    {".vim/coc-settings.json", "coc.nvim", "language servers named there are started (:help coc-configuration)"},
    {".lvimrc", "vim-localvimrc", "run when a file below is opened"},
    {".dir-locals.el", "Emacs", "eval forms and variables (Emacs manual, Directory Variables)"},
    {".dir-locals-2.el", "Emacs", "read after .dir-locals.el (Emacs manual, Directory Variables)"},
    {".editorconfig.local", "EditorConfig plug-ins", "settings"},
    // run by a shell or by git on the way past
    {".envrc", "direnv", "run when the directory is entered"},
    {".direnv", "direnv", "caches that are sourced"},
    {".husky", "husky", "hooks of git"},
    {".pre-commit-config.yaml", "pre-commit", "hooks of git"},
    {".overcommit.yml", "Overcommit", "hooks of git"},
    {"lefthook.*ml", "Lefthook", "hooks of git: yml, yaml, toml (Configuration, config file name)"},
    {"lefthook.json*", "Lefthook", "hooks of git: json, jsonc"},
    {".lefthook.*ml", "Lefthook", "as lefthook.*ml"},
    {".lefthook.json*", "Lefthook", "as lefthook.json*"},
    {"lefthook-local.*ml", "Lefthook", "merged over lefthook.*ml"},
    {"lefthook-local.json*", "Lefthook", "merged over lefthook.*ml"},
    {".lefthook-local.*ml", "Lefthook", "merged over lefthook.*ml"},
    {".lefthook-local.json*", "Lefthook", "merged over lefthook.*ml"},
    {".config/lefthook*", "Lefthook", "as lefthook.*ml"},
    {".lefthook", "Lefthook", "scripts (source_dir)"},
    {".lefthook-local", "Lefthook", "scripts (source_dir_local)"},
    {".hg/hgrc", "Mercurial", "hooks, extensions, aliases (hgrc(5))"},
    {".hg/hgrc-not-shared", "Mercurial", "as hgrc"},
    {".hg/sharedpath", "Mercurial", "the repository whose hgrc is read, too"},
    {".sl/config", "Sapling", "hooks, extensions, aliases"},
    {".sl/sharedpath", "Sapling", "the repository whose config is read, too"},
    {".lazygit.yml", "lazygit", "customCommands"},
    {".gdbinit", "gdb", "commands, where the directory is trusted"},
    {".gitconfig", "git", "aliases, hooks, filters, where a home is the workspace"},
    {".gitmodules", "git", "judged by content"},
    {".bashrc", "bash", "run at the start, where a home is the workspace"},
    {".bash_profile", "bash", "run at the start"},
    {".bash_login", "bash", "run at the start"},
    {".bash_logout", "bash", "run at the end"},
    {".bash_aliases", "bash", "run at the start"},
    {".profile", "sh", "run at the start"},
    {".zshrc", "zsh", "run at the start"},
    {".zshenv", "zsh", "run at the start"},
    {".zprofile", "zsh", "run at the start"},
    {".zlogin", "zsh", "run at the start"},
    {".zlogout", "zsh", "run at the end"},
    {".inputrc", "readline", "keys that type commands"},
    {".tmux.conf", "tmux", "run-shell"},
    {".screenrc", "screen", "exec"},
    {".ripgreprc", "ripgrep", "--pre runs a program"},
    {".npmrc", "npm", "script-shell, git and node-options name programs; registries get tokens"},
    {".yarnrc", "Yarn 1", "yarn-path is run"},
    {".yarnrc.yml", "Yarn", "yarnPath and plugins are run"},
    {"mise.*toml", "mise", "mise.toml, mise.local.toml, mise.ENV.toml: env, tasks, hooks (Configuration)"},
    {".mise.*toml", "mise", "as mise.*toml"},
    {".mise", "mise", "config.toml, tasks"},
    {"mise/config.*toml", "mise", "as mise.*toml"},
    {".config/mise", "mise", "config.toml, conf.d, tasks"},
    {".config/mise.*toml", "mise", "as mise.*toml"},
    {".tool-versions", "asdf, mise", "which programs a shim starts"},
};

constexpr std::string_view kUnprotectedParents[] = {"node_modules", "vendor", "site-packages", ".venv", "target"};
constexpr std::string_view kGitControl[] = {"hooks",     "config",          "config.worktree",
                                            "commondir", "gitdir",          "modules",
                                            "worktrees", "info/attributes", "objects/info/alternates"};

// Enough for programs to find their place and speak the user's language; nothing that points at a socket of the host
// (SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS, DISPLAY) and nothing that makes a program load code (LD_*, BASH_ENV, NODE_OPTIONS,
// PYTHONPATH, GIT_*). By those that name the terminal programs know whether it has links and colours. TMPDIR is not among them:
// merging sets it to fit the policy's temporary directories.
constexpr std::string_view kCore[] = {"PATH",
                                      "HOME",
                                      "USER",
                                      "LOGNAME",
                                      "SHELL",
                                      "LANG",
                                      "LANGUAGE",
                                      "LC_*",
                                      "TERM",
                                      "COLORTERM",
                                      "TERM_PROGRAM",
                                      "TERM_PROGRAM_VERSION",
                                      "TERM_FEATURES",
                                      "TERMINAL_EMULATOR",
                                      "VTE_VERSION",
                                      "KONSOLE_VERSION",
                                      "KITTY_WINDOW_ID",
                                      "WT_SESSION",
                                      "COLORFGBG",
                                      "FORCE_HYPERLINK",
                                      "NO_COLOR",
                                      "FORCE_COLOR",
                                      "CLICOLOR*",
                                      "COLUMNS",
                                      "LINES",
                                      "TZ",
                                      "PWD",
                                      "SHLVL",
                                      "EDITOR",
                                      "VISUAL",
                                      "PAGER",
                                      "CI",
                                      "XDG_CACHE_HOME",
                                      "XDG_CONFIG_HOME",
                                      "XDG_DATA_HOME",
                                      "XDG_STATE_HOME",
                                      "XDG_DATA_DIRS",
                                      "XDG_CONFIG_DIRS",
                                      "JAVA_HOME",
                                      "GOPATH",
                                      "GOROOT",
                                      "CARGO_HOME",
                                      "RUSTUP_HOME",
                                      "NVM_DIR",
                                      "PYENV_ROOT",
                                      "RBENV_ROOT",
                                      "VIRTUAL_ENV",
                                      "SOURCE_DATE_EPOCH",
                                      "DEBIAN_FRONTEND"};

constexpr std::string_view kSecretVariables[] = {
    "AWS_*",
    "AZURE_*",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*CREDENTIAL*",
    "*_KEY",
    "*_KEY_*",
    "*APIKEY*",
    "*API_KEY*",
    "*PRIVATE_KEY*",
    "*_PAT",
    "*_AUTH",
    "*_DSN",
    "*SESSION_ID*",
    "*COOKIE*",
    "*BEARER*",
    "DATABASE_URL",
    "*_DATABASE_URL",
    "MONGO*_URI",
    "REDIS_URL",
    "AMQP_URL",
    "*WEBHOOK*",
    "PGPASSFILE",
    "MYSQL_PWD",
    "KUBECONFIG",
    "DOCKER_AUTH_CONFIG",
    "DOCKER_HOST",
    "NETRC",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XAUTHORITY",
    "VAULT_*",
    "GH_*",
    "NPM_CONFIG__AUTH*",
};

template <std::size_t N>
void append(std::vector<std::string>& to, std::string_view parent, const std::string_view (&names)[N]) {
  if (!parent.starts_with('/') || parent == "/") return;
  for (const std::string_view name : names) {
    std::string path;
    path.reserve(parent.size() + 1 + name.size());
    path.append(parent).append("/").append(name);
    to.push_back(std::move(path));
  }
}

}  // namespace

std::vector<std::string> default_secret_paths(std::string_view home, std::string_view runtime_dir, std::string_view profile) {
  std::vector<std::string> result = home_secret_paths(home, profile);
  result.reserve(result.size() + std::size(kSystemSecrets) + std::size(kRuntimeSecrets));
  append(result, runtime_dir, kRuntimeSecrets);
  result.insert(result.end(), std::begin(kSystemSecrets), std::end(kSystemSecrets));
  return result;
}

bool is_plain_file_secret(std::string_view path) noexcept {
  // libpq, and so psql, pgbench and pg_dump. A plain file that it may not open it passes over in silence.
  return file_name(path) == ".pgpass";
}

std::string gpg_directory(std::string_view home) { return std::string(home) + "/.gnupg"; }

std::vector<std::string> home_secret_paths(std::string_view home, std::string_view profile) {
  std::vector<std::string> result;
  result.reserve(std::size(kHomeSecrets) + 32);
  append(result, home, kHomeSecrets);
  if (!result.empty()) append_log_ins(result, home, profile);
  return result;
}

std::vector<std::string> default_cache_dirs(std::string_view home) {
  std::vector<std::string> result;
  result.reserve(std::size(kCaches));
  append(result, home, kCaches);
  return result;
}

std::span<const ProtectedName> protected_names() noexcept { return kProtected; }
std::span<const std::string_view> unprotected_parents() noexcept { return kUnprotectedParents; }
std::span<const std::string_view> git_control_names() noexcept { return kGitControl; }
std::span<const std::string_view> core_variables() noexcept { return kCore; }
std::span<const std::string_view> secret_variables() noexcept { return kSecretVariables; }

}  // namespace belljar::policy
