// One text in the spellings that URLs, JSON and HTML give it.
#include "egress/spelling.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar::egress {
namespace {

constexpr std::string_view kSpelt = "p@ss&w/<1>'\" \\%.";

TEST(Spelling, EachLetterMayBeEscapedInAnyWay) {
  for (const std::string_view text : {R"(p@ss&w/<1>'" \%.)",                      // as it is
                                      R"(p%40ss%26w%2F%3C1%3E%27%22%20%5C%25.)",  // encodeURIComponent, quote(safe='')
                                      R"(p%40ss%26w/%3C1%3E%27%22%20%5C%25.)",    // urllib.parse.quote
                                      R"(p@ss&w/%3C1%3E'%22%20%5C%25.)",          // encodeURI
                                      R"(p%40ss%26w%2f%3c1%3e%27%22+%5c%25.)",    // a form
                                      R"(p@ss\u0026w/\u003c1\u003e'\" \\%.)",     // Go encoding/json
                                      R"(p@ss&w\/<1>\u0027\u0022 \\%.)",          // PHP json_encode
                                      R"(p@ss\x26w/\x3C1\x3e\'\" \\%.)",          // program text
                                      R"(p@ss&amp;w/&lt;1&gt;&#x27;&quot; \%.)",  // html.escape
                                      R"(p@ss&#38;w/&lt;1&gt;&#039;&#34; \%.)",   // Go html.EscapeString, PHP
                                      R"(p&#x40;ss&amp;w&#x2F;&lt;1&gt;&apos;&quot;&#32;&#X5c;&#37;.)",  // OWASP
                                      R"(%70\u0040&#115;s%26\u0077\x2F&lt;%31>'\"%20\u005C%25.)"}) {     // no encoder at all
    const SpellingMatch found = fit_spelling(kSpelt, std::string(text) + "&amp;more");
    EXPECT_EQ(found.fit, Fit::kWhole) << text;
    EXPECT_EQ(found.size, text.size()) << text;
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      EXPECT_EQ(fit_spelling(kSpelt, text.substr(0, cut)).fit, Fit::kMore) << text.substr(0, cut);
  }
}

TEST(Spelling, AnotherTextIsNone) {
  for (const char* text : {"p@ss&w/<1>'\" \\&.", "p@ss%27w", "p@ss&lt;", "p@ss\\u0027", "p@ss&#39;", "p@ss&ampw", "P@ss", "p%4",
                           "x", "%zz", "&#;", "&nbsp;", "\\q"})
    EXPECT_NE(fit_spelling(kSpelt, text).fit, Fit::kWhole) << text;
  for (const char* text : {"x", "p@st", "%zz", "%7x", "\\n", "& so", "&nbsp;", "&#xg"})
    EXPECT_EQ(fit_spelling(kSpelt, text).fit, Fit::kNo) << text;
}

TEST(Spelling, LettersBeyondAsciiAreReadAsUtf8) {
  for (const char* text : {"d\u00e9j\u00e0", R"(d\u00e9j\u00E0)", "d%C3%A9j%c3%a0", "d&#233;j&#xe0;"})
    EXPECT_EQ(fit_spelling("d\u00e9j\u00e0", text).fit, Fit::kWhole) << text;
  EXPECT_EQ(fit_spelling("d\u00e9j\u00e0", R"(d\u00e8)").fit, Fit::kNo);
}

// A percent sign may be one or begin its own escape; both are followed, each place once.
TEST(Spelling, WhatBeginsAnEscapeIsReadBothWays) {
  for (const char* text : {"%25", "%2525"}) EXPECT_EQ(fit_spelling("%25", text).fit, Fit::kWhole) << text;
  EXPECT_EQ(fit_spelling("%25x", "%25x").size, 4U);
  EXPECT_EQ(fit_spelling("%25x", "%2525x").size, 6U);
  EXPECT_EQ(fit_spelling("%25x", "%2525y").fit, Fit::kNo);
  EXPECT_EQ(fit_spelling("&amp;x", "&amp;amp;x").size, 10U);
  const std::string many(300, '\\');
  EXPECT_EQ(fit_spelling(many + "x", many + many + "y").fit, Fit::kNo) << "in a moment, not for ever";
  EXPECT_EQ(fit_spelling(many + "x", many + many + "x").size, 601U);
}

}  // namespace
}  // namespace belljar::egress
