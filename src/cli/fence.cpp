// tenure fence check: whether a fencing token is that of the current holder.

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Verdict on a token.
struct TokenCheck {
  v1::TokenVerdict verdict = v1::TOKEN_VERDICT_UNSPECIFIED;
  std::uint64_t newest = 0;
  std::string owner{};
};

/// Name of a verdict in the text and in JSON.
std::string_view word_of(v1::TokenVerdict verdict) {
  switch (verdict) {
    case v1::TOKEN_HELD: return "held";
    case v1::TOKEN_SUPERSEDED: return "superseded";
    case v1::TOKEN_ENDED: return "ended";
    case v1::TOKEN_NEVER_GIVEN: return "never_given";
    default: return "unknown";
  }
}

/// Check by the service, which also detects a token that was never granted.
Result<TokenCheck> ask_service(Service& service, const Arguments& arguments, std::uint64_t token) {
  v1::CheckTokenRequest request;
  request.set_name(service.with_prefix(arguments.words.front()));
  request.set_is_space(arguments.has("--space"));
  request.set_fencing_token(token);
  const auto answer = service.ask<v1::CheckTokenResponse>("Admin/CheckToken", request);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return TokenCheck{.verdict = answer->verdict(),
                    .newest = answer->newest_token(),
                    .owner = answer->holder().owner()};
}

/// Check through the client library, for other backends than tenured. It compares with the current
/// holders, so it cannot detect a token that was never granted.
Result<TokenCheck> ask_library(const Arguments& arguments, std::uint64_t token) {
  const auto client = open_client(arguments);
  if (!client) {
    return std::unexpected(client.error());
  }
  const auto holders = client->holders(arguments.words.front());
  if (!holders) {
    return std::unexpected(holders.error());
  }
  // The result if no holder has this token or a newer one.
  TokenCheck finding{.verdict = v1::TOKEN_ENDED};
  for (const auto& holder : *holders) {
    // A semaphore has several holders; each of their tokens counts as held.
    finding.newest = std::max(finding.newest, holder.token.get());
    if (holder.token.get() == token) {
      finding.verdict = v1::TOKEN_HELD;
      finding.owner = holder.owner;
    }
  }
  if (finding.verdict != v1::TOKEN_HELD && finding.newest > token) {
    finding.verdict = v1::TOKEN_SUPERSEDED;
  }
  return finding;
}

/// Prints the verdict. With --output quiet only the exit code reports it.
void print_finding(const TokenCheck& finding, const Arguments& arguments, std::uint64_t token) {
  const auto& name = arguments.words.front();
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object()
        .field("name", std::string_view(name))
        .id("token", token)
        .field("verdict", word_of(finding.verdict))
        .id("newest_token", finding.newest)
        .field("owner", std::string_view(finding.owner))
        .end_object();
    print(json.text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    const bool is_held = finding.verdict == v1::TOKEN_HELD;
    print(colored(is_held ? Color::green : Color::red, word_of(finding.verdict)) + "\t" +
          plain(name) + "\t" + std::to_string(token) + "\t" +
          (is_held              ? plain(finding.owner)
           : finding.newest > 0 ? "newest token: " + std::to_string(finding.newest)
                                : std::string("the lock is free")) +
          "\n");
  }
}

}  // namespace

int check_token(const Arguments& arguments) {
  // The parser requires exactly two words: the name and the token.
  const auto token =
      parse_number(arguments.words.back(), std::numeric_limits<std::uint64_t>::max());
  if (!token || *token == 0) {
    return failed(token ? Error{Errc::invalid_argument, "a token must be greater than 0"}
                        : token.error());
  }
  auto service = Service::open(arguments);
  // `unsupported` means another scheme than tenure://, for which the library answers.
  if (!service && service.error() != Errc::unsupported) {
    return failed(service.error());
  }
  const auto finding =
      service ? ask_service(*service, arguments, *token) : ask_library(arguments, *token);
  if (!finding) {
    return failed(finding.error());
  }
  print_finding(*finding, arguments, *token);
  // Every other verdict means that the job must not write.
  return code(finding->verdict == v1::TOKEN_HELD ? ExitCode::done : ExitCode::no);
}

}  // namespace tenure::cli
