// What the user's words ask for, as far as words tell it: to know something, to have something made, to do what a text says.
#pragma once

#include <string_view>

namespace belljar::guard {

struct Wishes {
  bool makes = false;      // an order to make or change something: "add ...", "..., then send it"
  bool makes_any = false;  // a word for that anywhere
  bool asks = false;       // to know: "what", "summarise"
  bool refers = false;     // to a text: "in the mail"
  bool delegates = false;  // orders what a text says: "follow", "do what she asks"
  bool forbids = false;    // "don't", "only tell me"
  bool repairs = false;    // something fails and is to be mended
  bool is_question = false;
};
// `text`: normalised (detect/normal.h); its first 4 KiB.
Wishes read_wishes(std::string_view text);

// A sentence is addressed to an assistant or another program that reads; says that something is missing or fails.
bool names_assistant(std::string_view sentence);
bool reports_failure(std::string_view sentence);

}  // namespace belljar::guard
