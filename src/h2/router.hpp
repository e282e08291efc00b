#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_map.h>

#include "h2/call.hpp"

namespace tenure::h2 {

/// Which call serves which path.
class Router {
 public:
  using Open = std::function<std::shared_ptr<Call>(const Opening&)>;
  /// Is told the code of every call that ended.
  using Ended = std::function<void(StatusCode)>;
  struct Route {
    Open open;
    Ended ended;
  };

  /// `path`: "/package.Service/Method".
  void add(std::string path, Route route) {
    routes_.insert_or_assign(std::move(path), std::move(route));
  }
  [[nodiscard]] const Route* find(const std::string& path) const {
    const auto it = routes_.find(path);
    return it == routes_.end() ? nullptr : &it->second;
  }

 private:
  absl::flat_hash_map<std::string, Route> routes_;
};

}  // namespace tenure::h2
