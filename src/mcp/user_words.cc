// Session: what the user wants, in the user's words, by whichever way they come.
//
// A model fills in the arguments of tools and nothing else, so no argument of a tool counts as the user's word.
// What counts is written by the client's program (`_meta` of a call), by a hook of the client or another program
// of the user's (the task file), by the person who answers a question (client.cc), or in the prompt `task`. A
// prompt is for users to choose (2025-06-18, Prompts, User Interaction Model), but nothing in the protocol shows
// who chose it: so it is offered only where the command line says so.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/result.h"
#include "mcp/defence.h"
#include "mcp/rpc.h"
#include "mcp/session.h"
#include "mcp/task_file.h"

namespace belljar::mcp {

std::string Session::note_meta(const Json& params) {
  if (auto words = task_file_.changed(); !words) log("warning", words.error().line());
  else if (*words) defence_.set_task(**std::move(words));
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) return defence_.note_user_words({}, {});
  const auto text = [&](const char* key) {
    const auto found = meta->find(key);
    return found != meta->end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return defence_.note_user_words(text("belljar/conversation"), text("belljar/user"));
}

Json Session::list_prompts() {
  const Json argument{{"name", "task"}, {"description", "What you want done, in your words"}, {"required", true}};
  return {{"prompts",
           {{{"name", "task"},
             {"title", "Say what you want done"},
             {"description",
              "Gives the model the task, and tells the sandbox that it is yours: acts that you asked for are asked about less"},
             {"arguments", Json::array({argument})}}}}};
}

void Session::get_prompt(const Message& request, const Reply& reply) {
  const auto refused = [&](std::string why) {
    reply(make_error({kInvalidParams, "Invalid params: " + std::move(why), request.id}));
  };
  if (request.params.value("name", Json()) != "task") return refused("there is one prompt, `task`");
  const Json arguments = request.params.value("arguments", Json());
  const Json words = arguments.is_object() ? arguments.value("task", Json()) : Json();
  if (!words.is_string() || words.get_ref<const std::string&>().empty()) return refused("`arguments.task` must be a text");
  const auto& text = words.get_ref<const std::string&>();
  if (text.size() > TaskFile::kLongest) return refused(format("`arguments.task` is longer than {} bytes", TaskFile::kLongest));
  defence_.add_user_words(note_meta(request.params), text);
  reply(make_result(request.id, {{"description", "The user's task"},
                                 {"messages", {{{"role", "user"}, {"content", {{"type", "text"}, {"text", text}}}}}}}));
}

}  // namespace belljar::mcp
