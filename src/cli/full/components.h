// The components of belljar-full (cli/components.h): each is all of a main(). `argv`: the program's name, then the words from the
// command's on.
#pragma once

namespace belljar::cli {

int serve_mcp(int argc, char** argv);
int work_as_agent(int argc, char** argv);
int read_audit_trail(int argc, char** argv);
int judge_and_scan(int argc, char** argv);
// `run` with the backend of that name.
int run_in_container(int argc, char** argv);
int run_on_e2b(int argc, char** argv);
int run_on_aliyun(int argc, char** argv);
int run_on_volcengine(int argc, char** argv);

}  // namespace belljar::cli
