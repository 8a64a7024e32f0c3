#include "shell/global_options.h"

#include <string_view>

#include "shell/word_list.h"

namespace belljar::shell {
namespace {

struct Row {
  std::string_view programs, with_word, alone;
};

constexpr Row kRows[] = {
    {"git", "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
     "-p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs "
     "--glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path --info-path --exec-path"},
    {"docker podman nerdctl",
     "-H --host -l --log-level -c --context --config --tlscacert --tlscert --tlskey --url --connection --root",
     "-D --debug --tls --tlsverify --remote -r"},
    {"kubectl oc",
     "-n --namespace --context --cluster --kubeconfig -s --server --token --user --as --as-group --as-uid --cache-dir "
     "--certificate-authority --client-certificate --client-key --request-timeout --tls-server-name -v",
     "--insecure-skip-tls-verify --match-server-version --warnings-as-errors"},
    {"helm", "-n --namespace --kube-context --kubeconfig --kube-token --kube-apiserver --registry-config --repository-config",
     "--debug"},
    {"npm pnpm yarn bun", "--prefix -C --dir --cwd -w --workspace -F --filter --userconfig --registry --cache --loglevel",
     "-s --silent -g --global --json -r --recursive --workspaces --ws --if-present --yes -y --offline --prefer-offline -d -dd "
     "-ddd"},
    {"cargo", "-C --config -Z --color --manifest-path --explain", "-v -vv --verbose -q --quiet --locked --offline --frozen"},
    {"go", "-C", ""},
    {"gh glab", "-R --repo --hostname", ""},
    {"aws", "--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout",
     "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager --no-cli-auto-prompt"},
    {"gcloud", "--project --account --configuration --format --verbosity --impersonate-service-account", "-q --quiet"},
    {"terraform tofu", "", "-help -version"},
    {"systemctl", "-H --host -M --machine -t --type -p --property -P -s --signal -o --output -n --lines --root --state --job-mode",
     "--user --system --global -q --quiet --no-block --no-pager --no-ask-password --now -f --force -a --all -l --full"},
    {"pip pip3 pipx", "--proxy --python --log --cache-dir --retries --timeout --exists-action --trusted-host --cert --client-cert",
     "-v --verbose -q --quiet --isolated --no-input --disable-pip-version-check --require-virtualenv --no-cache-dir --no-color"},
    {"apt apt-get", "-o -c -t --option --config-file --target-release", "-y --yes -q -qq --quiet -s --simulate -f -d -m"},
    {"dnf yum", "-c -x --config --exclude --installroot --releasever --setopt -d -e", "-y --assumeyes -q --quiet -v"},
    {"uv", "--directory --project --config-file --cache-dir -p --python --color",
     "-q --quiet -v --verbose --offline --no-cache -n"},
    {"poetry", "-C --directory -P --project", "-q --quiet -v -vv -vvv -n --no-interaction --no-ansi --no-cache"},
    {"make gmake", "-C -f -I -o -W --directory --file --makefile --include-dir", "-k -n -s -i -B -w -e -r --silent --dry-run"},
};

}  // namespace

TakesWord takes_word(std::string_view program, std::string_view option) noexcept {
  if (option.find('=') != std::string_view::npos || option == "--") return TakesWord::kNo;
  for (const Row& row : kRows) {
    if (!has_word(row.programs, program)) continue;
    if (has_word(row.with_word, option)) return TakesWord::kYes;
    return has_word(row.alone, option) ? TakesWord::kNo : TakesWord::kUnknown;
  }
  return TakesWord::kUnknown;
}

}  // namespace belljar::shell
