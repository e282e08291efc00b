#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "server/http/message.hpp"
#include "server/http/pages.hpp"
#include "server/metrics.hpp"
#include "server/store.hpp"

namespace tenure::server::http {

/// Which page answers which path. Everything but event streams.
class Router {
 public:
  /// `home` is where pages are written: the thread of HTTP, not that of the store.
  Router(Store& store, Metrics& metrics, boost::asio::any_io_executor home, ServerFacts facts);

  /// Calls `reply` once, at home.
  void serve(const Request& request, Reply reply) const;

 private:
  void ready(Reply reply) const;
  void metrics(Reply reply) const;
  void status(Reply reply) const;
  void cluster(Reply reply) const;
  void locks(const Request& request, Reply reply) const;
  void lock(const Request& request, std::string_view name, Reply reply) const;
  void leases(const Request& request, Reply reply) const;
  void lease(const Request& request, std::string_view id, Reply reply) const;

  /// Copies with `copy(view)` on the store's thread and answers with `page(copied)` at home. With
  /// ?stale=true any member answers, from what it has.
  template <class Copy, class Page>
  void look(const Request& request, Reply reply, Copy copy, Page page) const;

  Store& store_;
  Metrics& metrics_;
  boost::asio::any_io_executor home_;
  ServerFacts facts_;
};

}  // namespace tenure::server::http
