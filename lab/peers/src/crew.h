// Threads that start together.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "clock.h"

namespace peers {

// Runs work(member) on count threads, of which the caller is one, and answers with the time from their
// common start to the end of the last. Who waits spins and yields.
template <class Work>
int64_t together(int count, Work&& work_of) {
  std::atomic<int> ready{0}, done{0};
  std::atomic<bool> begun{false};
  std::vector<std::thread> others;
  for (int member = 1; member < count; member++) {
    others.emplace_back([&, member] {
      ready.fetch_add(1);
      while (!begun.load()) std::this_thread::yield();
      work_of(member);
      done.fetch_add(1);
    });
  }
  while (ready.load() < count - 1) std::this_thread::yield();
  int64_t start = now_ns();
  begun.store(true);
  work_of(0);
  while (done.load() < count - 1) std::this_thread::yield();
  int64_t elapsed_ns = now_ns() - start;
  for (std::thread& t : others) t.join();
  return elapsed_ns;
}

}  // namespace peers
