#include "detect/concealed.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar::detect {
namespace {

TEST(Concealed, InsideACommentAndNotBehindIt) {
  const std::string text = "a <!-- b --> c <!-- d";
  const Concealed concealed(text);
  EXPECT_FALSE(concealed.at(text.find('a')));
  EXPECT_TRUE(concealed.at(text.find('b')));
  EXPECT_FALSE(concealed.at(text.find('c')));
  EXPECT_TRUE(concealed.at(text.find('d')));
  EXPECT_FALSE(Concealed("a --> b").at(6));
}

TEST(Concealed, BehindAStyleThatHides) {
  for (const std::string style : {"display:none", "display: none", "font-size:0", "font-size: 0", "visibility:hidden", "opacity:0",
                                  "color:white", "color:#fff", "[//]: #"})
    EXPECT_TRUE(Concealed(style + " x").at(style.size())) << style;
  for (const std::string style : {"display:block", "font-size: 12px", "color:black", "[//]: x"})
    EXPECT_FALSE(Concealed(style + " x").at(style.size())) << style;
}

TEST(Concealed, OnlyNearby) {
  EXPECT_TRUE(Concealed("<!--" + std::string(596, 'x')).at(600));
  EXPECT_FALSE(Concealed("<!--" + std::string(597, 'x')).at(601));
  EXPECT_TRUE(Concealed("opacity:0" + std::string(591, 'x')).at(600));
  EXPECT_FALSE(Concealed("opacity:0" + std::string(592, 'x')).at(601));
}

}  // namespace
}  // namespace belljar::detect
