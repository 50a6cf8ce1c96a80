// The scenarios of vram bench that a peer can take part in, under the same names.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "crew.h"
#include "measure.h"
#include "peer.h"
#include "sequence.h"

namespace peers {

constexpr int64_t kSmallBytes = 4 << 10;

template <class Peer>
class Scenarios {
 public:
  Scenarios(Peer& peer, const Options& options) : peer_(peer), options_(options), meter_(options) {}

  // Runs what the options name; false where there is no such scenario.
  bool run() {
    const std::vector<std::pair<std::string, std::function<void()>>> all = {
        {"pair", [this] { pair(); }},
        {"lifo", [this] { lifo(); }},
        {"varied", [this] { varied(); }},
        {"own-streams", [this] { threads("own-streams", false); }},
        {"one-stream", [this] { threads("one-stream", true); }},
        {"batch", [this] { batch(); }},
        {"record", [this] { record(); }},
        {"paced", [this] { paced(); }},
        {"warmup", [this] { warmup(); }},
    };
    bool found = false;
    for (const auto& [name, measure] : all) {
      if (options_.scenario != "all" && options_.scenario != name) continue;
      found = true;
      measure();
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      peer_.forget();
    }
    return found;
  }

 private:
  Row row(const char* scenario, int64_t size_bytes, int64_t count, int thread_count) const {
    return Row{scenario, options_.impl, size_bytes, count, thread_count};
  }

  void pairs(int64_t bytes, cudaStream_t stream, int64_t count) {
    for (int64_t i = 0; i < count; i++) peer_.release(must(peer_, bytes, stream), stream);
  }

  // One size, on some threads, each with a stream of its own or all on one.
  Load pair_load(int64_t bytes, const Streams& streams, int count, bool shared) {
    auto of = [&streams, shared](int member) { return streams[shared ? 0 : static_cast<size_t>(member)]; };
    Load load;
    load.run = [this, bytes, count, of](int64_t wanted) {
      int64_t each = std::max<int64_t>(1, wanted / count);
      int64_t elapsed_ns = together(count, [&](int member) { pairs(bytes, of(member), each); });
      return Repetition{each * count, elapsed_ns};
    };
    load.sample = [this, bytes, count, of](std::vector<double>& nanos, size_t most, int64_t until_ns) {
      std::vector<std::vector<double>> own(static_cast<size_t>(count));
      together(count, [&](int member) {
        std::vector<double>& mine = own[static_cast<size_t>(member)];
        while (mine.size() < most / static_cast<size_t>(count) && now_ns() < until_ns) {
          int64_t start = now_ns();
          pairs(bytes, of(member), 1);
          mine.push_back(static_cast<double>(now_ns() - start));
        }
      });
      for (const auto& mine : own) nanos.insert(nanos.end(), mine.begin(), mine.end());
    };
    return load;
  }

  void pair() {
    Streams streams(1);
    for (int64_t bytes : {512ll, 4ll << 10, 64ll << 10, 1ll << 20, 4ll << 20, 16ll << 20, 128ll << 20}) {
      meter_.measure(row("pair", bytes, 1, 1), pair_load(bytes, streams, 1, true));
    }
  }

  // One size that a second stream uses until it is released.
  void record() {
    if constexpr (Peer::kRecords) {
      Streams streams(2);
      for (int64_t bytes : {4ll << 10, 1ll << 20, 16ll << 20, 128ll << 20}) {
        auto pairs = [&](int64_t count) {
          for (int64_t i = 0; i < count; i++) {
            void* p = must(peer_, bytes, streams[0]);
            peer_.record(p, streams[1]);
            peer_.release(p, streams[0]);
          }
        };
        Load load;
        load.run = [&](int64_t count) {
          int64_t start = now_ns();
          pairs(count);
          return Repetition{count, now_ns() - start};
        };
        load.sample = [&](std::vector<double>& nanos, size_t most, int64_t until_ns) {
          while (nanos.size() < most && now_ns() < until_ns) {
            int64_t start = now_ns();
            pairs(1);
            nanos.push_back(static_cast<double>(now_ns() - start));
          }
        };
        meter_.measure(row("record", bytes, 1, 1), load);
      }
    }
  }

  void threads(const char* name, bool shared) {
    for (int count : {1, 2, 4, 8, 16}) {
      Streams streams(count);
      meter_.measure(row(name, kSmallBytes, 1, count), pair_load(kSmallBytes, streams, count, shared));
    }
  }

  void lifo() {
    const size_t depth = 1000;
    Streams streams(1);
    std::vector<void*> live(depth);
    Load load;
    load.run = [&](int64_t wanted) {
      int64_t times = (wanted + static_cast<int64_t>(depth) - 1) / static_cast<int64_t>(depth);
      int64_t start = now_ns();
      for (int64_t t = 0; t < times; t++) {
        for (size_t i = 0; i < depth; i++) live[i] = must(peer_, kSmallBytes, streams[0]);
        for (size_t i = depth; i-- > 0;) peer_.release(live[i], streams[0]);
      }
      return Repetition{times * static_cast<int64_t>(depth), now_ns() - start};
    };
    load.sample = [&](std::vector<double>& nanos, size_t most, int64_t until_ns) {
      while (nanos.size() < most && now_ns() < until_ns) {
        std::vector<double> once(depth);
        for (size_t i = 0; i < depth; i++) {
          int64_t start = now_ns();
          live[i] = must(peer_, kSmallBytes, streams[0]);
          once[i] = static_cast<double>(now_ns() - start);
        }
        for (size_t i = depth; i-- > 0;) {
          int64_t start = now_ns();
          peer_.release(live[i], streams[0]);
          once[i] += static_cast<double>(now_ns() - start);
        }
        nanos.insert(nanos.end(), once.begin(), once.end());
      }
    };
    meter_.measure(row("lifo", kSmallBytes, static_cast<int64_t>(depth), 1), load);
  }

  void varied() {
    const int live_count = 500;
    Streams streams(1);
    Sequence sequence(live_count);
    std::vector<void*> live;
    for (int i = 0; i < live_count; i++) live.push_back(must(peer_, sequence.next().bytes, streams[0]));
    auto churn = [&](int64_t count) {
      for (int64_t i = 0; i < count; i++) {
        const Step& s = sequence.next();
        peer_.release(live[s.victim], streams[0]);
        live[s.victim] = must(peer_, s.bytes, streams[0]);
      }
    };
    Load load;
    load.run = [&](int64_t count) {
      int64_t start = now_ns();
      churn(count);
      return Repetition{count, now_ns() - start};
    };
    load.sample = [&](std::vector<double>& nanos, size_t most, int64_t until_ns) {
      while (nanos.size() < most && now_ns() < until_ns) {
        int64_t start = now_ns();
        churn(1);
        nanos.push_back(static_cast<double>(now_ns() - start));
      }
    };
    meter_.measure(row("varied", 0, live_count, 1), load);
    for (void* p : live) peer_.release(p, streams[0]);
  }

  // A batch is a loop here: no peer has a call for it.
  void batch() {
    const std::vector<std::vector<int64_t>> kinds = {
        {kSmallBytes}, {3 << 10, 4 << 10, 12 << 10, 48 << 10, 64 << 10, 768 << 10, 2304 << 10, 3 << 20}};
    Streams streams(1);
    for (size_t count : {size_t{64}, size_t{1000}}) {
      for (const std::vector<int64_t>& sizes : kinds) {
        std::vector<void*> live(count);
        auto alloc = [&] {
          for (size_t i = 0; i < count; i++) live[i] = must(peer_, sizes[i % sizes.size()], streams[0]);
        };
        auto release = [&] {
          for (void* p : live) peer_.release(p, streams[0]);
        };
        Load load;
        load.run = [&](int64_t wanted) {
          int64_t times = (wanted + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
          int64_t start = now_ns();
          for (int64_t t = 0; t < times; t++) {
            alloc();
            release();
          }
          return Repetition{times * static_cast<int64_t>(count), now_ns() - start};
        };
        load.sample_pairs = static_cast<int64_t>(count);
        load.sample = [&](std::vector<double>& nanos, size_t most, int64_t until_ns) {
          while (nanos.size() < most && now_ns() < until_ns) {
            int64_t start = now_ns();
            alloc();
            nanos.push_back(static_cast<double>(now_ns() - start));
            release();
          }
        };
        meter_.measure(row("batch", sizes.size() == 1 ? sizes[0] : 0, static_cast<int64_t>(count), 1), load);
      }
    }
  }

  // Single requests with 5 us of other work between them. A time is one request's, an allocation's or a free's.
  void paced() {
    const int64_t between_ns = 5000, most_pairs = 1000;
    Streams streams(1);
    auto request = [&](std::vector<double>& nanos) {
      work(between_ns);
      int64_t start = now_ns();
      void* p = must(peer_, kSmallBytes, streams[0]);
      nanos.push_back(static_cast<double>(now_ns() - start));
      work(between_ns);
      start = now_ns();
      peer_.release(p, streams[0]);
      nanos.push_back(static_cast<double>(now_ns() - start));
    };
    Load load;
    load.run = [&](int64_t wanted) {
      std::vector<double> nanos;
      int64_t count = std::min(wanted, most_pairs);
      for (int64_t i = 0; i < count; i++) request(nanos);
      double sum = 0;
      for (double n : nanos) sum += std::max(0.0, n - meter_.timer_ns());
      return Repetition{count, std::max<int64_t>(1, static_cast<int64_t>(sum))};
    };
    load.sample = [&](std::vector<double>& nanos, size_t most, int64_t until_ns) {
      while (nanos.size() < most && now_ns() < until_ns) request(nanos);
    };
    meter_.measure(row("paced", kSmallBytes, 1, 1), load);
  }

  // The first allocations with an empty cache, and after as many were allocated and freed once. A pair is an
  // allocation here.
  void warmup() {
    const size_t count = 100;
    const int64_t bytes = 16 << 20;
    Streams streams(1);
    for (bool warm : {false, true}) {
      auto first = [&, warm](std::vector<double>* nanos) {
        std::vector<void*> live(count);
        auto release = [&] {
          for (void* p : live) peer_.release(p, streams[0]);
          check(cudaStreamSynchronize(streams[0]), "cudaStreamSynchronize");
        };
        if (warm) {
          for (void*& p : live) p = must(peer_, bytes, streams[0]);
          release();
        }
        int64_t begin = now_ns();
        for (void*& p : live) {
          int64_t start = nanos != nullptr ? now_ns() : 0;
          p = must(peer_, bytes, streams[0]);
          if (nanos != nullptr) nanos->push_back(static_cast<double>(now_ns() - start));
        }
        int64_t elapsed_ns = now_ns() - begin;
        release();
        peer_.forget();
        return Repetition{static_cast<int64_t>(count), elapsed_ns};
      };
      Load load;
      load.run = [&first](int64_t) { return first(nullptr); };
      load.sample = [&first](std::vector<double>& nanos, size_t most, int64_t until_ns) {
        while (nanos.size() < most && now_ns() < until_ns) first(&nanos);
      };
      Row r = row("warmup", bytes, static_cast<int64_t>(count), 1);
      if (!warm) r.impl += "-cold";
      meter_.measure(r, load);
    }
  }

  Peer& peer_;
  const Options& options_;
  Meter meter_;
};

}  // namespace peers
