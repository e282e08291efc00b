#include "server/rpc/reflection_service.hpp"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace tenure::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using ::grpc::reflection::v1alpha::ServerReflectionRequest;
using ::grpc::reflection::v1alpha::ServerReflectionResponse;

// Listed by hand: the descriptor pool also contains services that this server does not implement.
constexpr std::string_view services[] = {"tenure.v1.LockService", "tenure.v1.Admin",
                                         "grpc.health.v1.Health",
                                         "grpc.reflection.v1alpha.ServerReflection"};

/// Depth-first over the imports; `seen` avoids duplicates, because imports form a graph.
void add_with_imports(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
                      ServerReflectionResponse& out) {
  if (!seen.insert(&file).second) {
    return;
  }
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.AppendToString(out.mutable_file_descriptor_response()->add_file_descriptor_proto());
  for (int n = 0; n < file.dependency_count(); ++n) {
    add_with_imports(*file.dependency(n), seen, out);
  }
}

/// File with its imports, or NOT_FOUND as an error inside the stream, which continues.
void answer_file(const FileDescriptor* file, ServerReflectionResponse& out) {
  if (file == nullptr) {
    auto& error = *out.mutable_error_response();
    error.set_error_code(static_cast<int>(grpc::StatusCode::not_found));
    error.set_error_message("unknown file or symbol");
    return;
  }
  std::set<const FileDescriptor*> seen;
  add_with_imports(*file, seen, out);
}

ServerReflectionResponse answer_to(const ServerReflectionRequest& request) {
  const auto& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse out;
  out.set_valid_host(request.host());
  *out.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const auto name : services) {
        out.mutable_list_services_response()->add_service()->set_name(std::string(name));
      }
      break;
    case ServerReflectionRequest::kFileByFilename:
      answer_file(pool.FindFileByName(request.file_by_filename()), out);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()), out);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      // The API defines no extensions.
      out.mutable_all_extension_numbers_response()->set_base_type_name(
          request.all_extension_numbers_of_type());
      break;
    case ServerReflectionRequest::kFileContainingExtension:
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET: answer_file(nullptr, out); break;
  }
  return out;
}

/// One reflection stream; each request is answered from the descriptors, without the store.
class Reflection final : public grpc::Call {
 public:
  using Call::Call;

 private:
  void received(std::string_view message) override {
    ServerReflectionRequest request;
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish({grpc::StatusCode::invalid_argument, "invalid ServerReflectionRequest"});
      return;
    }
    send(answer_to(request));
  }
  void half_closed() override { finish({}); }
  void closed() override {}
};

}  // namespace

void add_reflection(Routes& routes) {
  routes.add("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
             auth::Permission::none,
             [](const grpc::CallInfo& info, const std::unique_ptr<auth::Principal>&) {
               return std::make_shared<Reflection>(info);
             });
}

}  // namespace tenure::server
