#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tenure::model {

/// Runs a rapidcheck property inside a GoogleTest. `cases` is the everyday number of cases;
/// RC_PARAMS="max_success=100000" raises it, RC_PARAMS="seed=..." and "reproduce=..." replay.
template <class Property>
void check_property(int cases, Property&& property) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + info->name();
  metadata.description = info->name();
  auto params = rc::detail::configuration().testParams;
  const char* given = std::getenv("RC_PARAMS");
  if (given == nullptr || !std::string_view(given).contains("max_success")) {
    params.maxSuccess = cases;
  }

  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);

  if (!result.template is<rc::detail::SuccessResult>()) {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    FAIL() << text.str();
  }
}

}  // namespace tenure::model
