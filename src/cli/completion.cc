// belljar completion bash|zsh|fish: what a shell loads to complete our commands. See complete.h for what the scripts ask.
#include <memory>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"

namespace belljar::cli {
namespace {

// bash takes words apart at `=` and `:` (COMP_WORDBREAKS), so they are put together again, and what of a candidate stands before
// its last such sign is already there.
constexpr std::string_view kBash = R"(# bash completion for belljar. Load it: source <(belljar completion bash)
_belljar() {
  local words=() word line i glue=
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == [=:] || -n $glue ]] && ((${#words[@]})); then
      words[${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
    [[ $word == [=:] ]] && glue=1 || glue=
  done
  local current=${words[${#words[@]} - 1]}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${current##*[=:]}") ;;
      :directories) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "${current##*[=:]}") ;;
      :program)
        for ((i = 1; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]} == -- ]] && break; done
        if declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
        elif ((i + 1 == COMP_CWORD)); then
          mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
          compopt -o filenames
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        ;;
      *)
        word=${line%%$'\t'*}
        [[ $current == *[=:]* ]] && word=${word#"${current%[=:]*}"[=:]}
        COMPREPLY+=("$word")
        ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _belljar belljar
)";

constexpr std::string_view kZsh = R"(#compdef belljar
# zsh completion for belljar: a file _belljar in a directory of $fpath, or: source <(belljar completion zsh)
_belljar() {
  local line word
  local -a found shown
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) compset -P '*='; _files ;;
      :directories) compset -P '*='; _files -/ ;;
      :program)
        local dashes=${words[(i)--]}
        shift $dashes words
        ((CURRENT -= dashes))
        _normal
        ;;
      *)
        word=${line%%$'\t'*}
        found+=("$word")
        shown+=("${word}  ${line#*$'\t'}")
        ;;
    esac
  done
  (($#found)) && compadd -l -d shown -- "${found[@]}"
}
if [[ $funcstack[1] == _belljar ]]; then _belljar "$@"; else compdef _belljar belljar; fi
)";

constexpr std::string_view kFish = R"(# fish completion for belljar. Load it: belljar completion fish | source
function __belljar_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case :files
        __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
      case :directories
        __fish_complete_directories (string replace -r '^--[^=]*=' '' -- "$current") ''
      case :program
        set -e words[1..(contains -i -- -- $words)]
        __fish_complete_subcommand --commandline $words "$current"
      case '*'
        echo $line
    end
  end
end
complete -c belljar -f -a '(__belljar_complete)'
)";

}  // namespace

void add_completion(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("completion", "Print what makes bash, zsh or fish complete these commands");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "Which shell").one_of({"bash", "zsh", "fish"}).required();
  command.callback([shell, &exit_code] {
    exit_code = print_result(std::string(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish));
  });
}

}  // namespace belljar::cli
