#include "comm/mpi/mpi_failure_reports.h"

#include <mpi.h>

#include <thread>

#include "comm/mpi/point_to_point.h"

namespace zero {
namespace {

constexpr std::size_t longest = 64 << 10;
constexpr int tag = 7;

class MpiFailureReports final : public FailureReports {
 public:
  explicit MpiFailureReports(int handle) {
    check_mpi(MPI_Comm_dup(MPI_Comm_f2c(handle), &comm_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~MpiFailureReports() override {
    int over = 0;
    MPI_Finalized(&over);
    if (!over && !used_) MPI_Comm_free(&comm_);  // freeing waits for the other ranks, which may be gone
  }

  std::vector<std::string> exchange(const std::string& mine, const std::vector<int>& peers,
                                    std::chrono::duration<double> patience) override {
    used_ = true;
    mine_ = mine.substr(0, longest);
    inboxes_.assign(peers.size(), std::string(longest, '\0'));
    std::vector<MPI_Request> sent(peers.size(), MPI_REQUEST_NULL), awaited(peers.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      MPI_Irecv(inboxes_[i].data(), int(longest), MPI_BYTE, peers[i], tag, comm_, &awaited[i]);
      MPI_Isend(mine_.data(), int(mine_.size()), MPI_BYTE, peers[i], tag, comm_, &sent[i]);
    }
    std::vector<std::string> told(peers.size());
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t open = peers.size(); open > 0 && std::chrono::steady_clock::now() - begin < patience;) {
      open = 0;
      for (std::size_t i = 0; i < peers.size(); ++i) {
        if (awaited[i] == MPI_REQUEST_NULL) continue;
        int done = 0, count = 0;
        MPI_Status status{};
        if (MPI_Test(&awaited[i], &done, &status) != MPI_SUCCESS)
          awaited[i] = MPI_REQUEST_NULL;  // peer is gone
        else if (!done)
          ++open;
        else if (MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS)
          told[i] = inboxes_[i].substr(0, std::size_t(count));
      }
      if (open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    for (MPI_Request& request : awaited) give_up(request, /*cancel=*/true);
    for (MPI_Request& request : sent) give_up(request, /*cancel=*/false);
    return told;
  }

 private:
  static void give_up(MPI_Request& request, bool cancel) {
    if (request == MPI_REQUEST_NULL) return;
    if (cancel) MPI_Cancel(&request);
    MPI_Request_free(&request);
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool used_ = false;
  std::string mine_;                  // send buffer: messages may still be in flight
  std::vector<std::string> inboxes_;  // receive buffers, likewise
};

}  // namespace

std::unique_ptr<FailureReports> MpiFailures::make_reports() { return std::make_unique<MpiFailureReports>(handle_); }

}  // namespace zero
