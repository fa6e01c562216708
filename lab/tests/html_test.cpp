#include "lab/html/html.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::lab::html {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escaped, LeavesNoMarkupAndNoControlCharacters) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
  EXPECT_EQ(escaped(std::string("a\0b\x1b\x7f", 5)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(escaped("Δp\tü\n"), "Δp\tü\n");
}

TEST(ScriptSafe, KeepsTheJsonAndEndsNoScriptElement) {
  EXPECT_EQ(script_safe(R"(["</script><!--"])"), R"(["\u003c/script>\u003c!--"])");
}

TEST(Document, AllowsItsOwnScriptsByHashAndNoRequest) {
  const std::string page = document({.title = "<t>", .body = "<p>x</p>", .scripts = {"alert(1)"}});
  // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;t&gt;</title>"));
  EXPECT_THAT(document({.title = "t"}), HasSubstr("script-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("://")));
}

TEST(Verdict, IsSaidByASignAndAWordBesidesItsColour) {
  EXPECT_THAT(verdict("PASS"), AllOf(HasSubstr("good"), HasSubstr("✓"), HasSubstr("PASS")));
  EXPECT_THAT(verdict("FAIL"), AllOf(HasSubstr("bad"), HasSubstr("✕")));
  EXPECT_THAT(verdict("<b>"), AllOf(HasSubstr("plain"), HasSubstr("&lt;b&gt;")));
}

TEST(TableHtml, HasHeadingsForRowsAndColumnsAndScrollsInItself) {
  const std::string html = table({.caption = "A & B",
                                  .columns = {{"form"}, {"ms", true}},
                                  .rows = {{.cells = {"x", "1"}, .style = "quiet"}}});
  for (const char* part :
       {"<caption>A &amp; B</caption>", "<th scope=\"col\">form</th>",
        "<th scope=\"col\" class=\"number\">ms</th>", "<tr class=\"quiet\"><th scope=\"row\">x</th>",
        "<td class=\"number\">1</td>", "class=\"scroll\" role=\"region\" tabindex=\"0\""}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
}

TEST(RatioAxis, HoldsOneAndEveryRatioInOrder) {
  RatioAxis axis;
  for (const double ratio : {0.5, 4.0}) axis.include(ratio);
  EXPECT_GT(axis.percent(0.5), 0);
  EXPECT_LT(axis.percent(0.5), axis.percent(1));
  EXPECT_LT(axis.percent(1), axis.percent(4));
  EXPECT_LT(axis.percent(4), 100);
  EXPECT_EQ(axis.percent(1e9), 100);
  EXPECT_NEAR(axis.percent(2) - axis.percent(1), axis.percent(4) - axis.percent(2), 1e-9) << "logarithmic";
  EXPECT_THAT(axis.ticks(), AllOf(HasSubstr(">1×<"), HasSubstr(">2×<"), Not(HasSubstr(">5×<"))));
}

TEST(RatioPlot, IsHollowWhereThereIsDoubt) {
  const RatioAxis axis;
  EXPECT_THAT(ratio_plot(axis, 1.1, 1.05, 1.2, true), HasSubstr("dot doubt"));
  EXPECT_THAT(ratio_plot(axis, 1.1, 1.05, 1.2, false), Not(HasSubstr("doubt")));
}

}  // namespace
}  // namespace assay::lab::html
