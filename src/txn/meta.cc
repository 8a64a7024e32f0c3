#include "txn/meta.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

namespace belljar::txn {

using Json = nlohmann::json;

bool Meta::holds(LayerId layer) const {
  return std::ranges::any_of(chain, [&](LayerId one) {
    if (one == layer) return true;
    const auto parts = flat.find(one);
    return parts != flat.end() && std::ranges::find(parts->second, layer) != parts->second.end();
  });
}

std::string encode(const Meta& meta) {
  Json root = {{"version", 1},
               {"workspace", meta.workspace},
               {"born", meta.birth_time},
               {"chain", meta.chain},
               {"pending", meta.pending_since}};
  root["snapshots"] = Json::array();
  for (const Snapshot& snapshot : meta.snapshots) root["snapshots"].push_back({{"name", snapshot.name}, {"chain", snapshot.chain}});
  root["flat"] = Json::array();
  for (const auto& [id, parts] : meta.flat) root["flat"].push_back(Json::array({id, parts}));
  std::string bytes;
  Json::to_cbor(root, bytes);
  return bytes;
}

Result<Meta> decode_meta(std::string_view bytes) {
  try {
    const Json root = Json::from_cbor(bytes);
    if (root.at("version") != 1) throw std::exception();
    Meta meta;
    meta.workspace = root.at("workspace").get<std::string>();
    meta.birth_time = root.value("born", std::int64_t{0});
    meta.chain = root.at("chain").get<std::vector<LayerId>>();
    meta.pending_since = root.at("pending").get<std::int64_t>();
    for (const Json& one : root.at("snapshots"))
      meta.snapshots.push_back({one.at("name").get<std::string>(), one.at("chain").get<std::vector<LayerId>>()});
    for (const Json& one : root.at("flat")) meta.flat[one.at(0)] = one.at(1).get<std::vector<LayerId>>();
    if (meta.chain.empty()) throw std::exception();
    return meta;
  } catch (const std::exception&) {
    return Error(Code::kDataLoss, "cannot read the state of a transaction")
        .reason("its file is damaged, or of another version of belljar")
        .next("`belljar rollback` drops the transaction");
  }
}

}  // namespace belljar::txn
