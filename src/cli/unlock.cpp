// tenure unlock --force: takes a lock from its holder.

#include <string>

#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "cli/question.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

std::string holders_text(const v1::LockStatus& lock) {
  std::string text;
  for (const auto& holder : lock.holders()) {
    text += (text.empty() ? "" : ", ") + plain(holder.owner()) + " (";
    text += holder.user().empty() ? "" : "user " + plain(holder.user()) + ", ";
    text += "token " + std::to_string(holder.fencing_token()) + ")";
  }
  return text;
}

}  // namespace

int unlock(const Arguments& arguments) {
  if (!arguments.has("--force")) {
    return failed({Errc::invalid_argument,
                   "who holds a lock gives it back by ending; to take it away from somebody else: "
                   "tenure unlock --force NAME"});
  }
  auto service = Service::open(arguments);
  const auto token = arguments.number("--token", UINT64_MAX);
  if (!service || !token) {
    return failed(!service ? service.error() : token.error());
  }
  const auto& name = arguments.words.front();
  const auto lock = explained(*service, service->full(name), arguments.has("--space"));
  if (!lock) {
    return failed(lock.error());
  }
  if (lock->lock().holder_count() == 0) {
    return failed({Errc::not_held, plain(name) + " is free"});
  }
  const auto asked =
      confirmed(arguments, "Take " + plain(name) + " from " + holders_text(lock->lock()) +
                               "? What it does from now on may meet the next holder.");
  if (!asked) {
    return failed(asked.error());
  }
  v1::ForceReleaseRequest request;
  request.set_name(service->full(name));
  request.set_is_space(arguments.has("--space"));
  request.set_fencing_token(token->value_or(0));
  request.set_reason(arguments.text("--reason").value_or(""));
  const auto answer = service->ask<v1::ForceReleaseResponse>("Admin/ForceRelease", request);
  if (!answer) {
    return failed(answer.error());
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object().field("holds", std::uint64_t{answer->holds()}).end_object();
    print(json.text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    print("taken from " + std::to_string(answer->holds()) + "\n");
  }
  return code(ExitCode::done);
}

}  // namespace tenure::cli
