// TCP over a dumbbell in ns-3: one bulk flow for each congestion control named, over one bottleneck with a drop-tail
// queue. Prints one line of JSON. `--help` lists the options.
//
// Hosts reach the bottleneck over 10 Gbit/s links whose queues never fill. Of the one-way delay, two thirds are the
// bottleneck's. Point-to-point links add 2 bytes (PPP) to each packet. Loss is random, on the data's way, behind the
// bottleneck's queue. Traffic control (a second queue) is taken off, so that the queue is the one that is asked for.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/version-defines.h"

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

struct Options {
    std::string ccs = "TcpCubic";
    std::string bw = "35Mbps";
    double rttMs = 30;
    uint32_t queue = 100;
    double loss = 0;
    uint32_t mss = 1448;
    uint32_t buffer = 8000000;
    double duration = 100;
    double warmup = 10;
    uint32_t run = 1;

    void Parse(int argc, char** argv) {
        CommandLine cmd;
        cmd.AddValue("ccs", "ns-3 congestion controls, separated by commas, one flow each", ccs);
        cmd.AddValue("bw", "rate of the bottleneck", bw);
        cmd.AddValue("rtt", "round-trip propagation delay in ms", rttMs);
        cmd.AddValue("queue", "packets that the bottleneck's queue holds", queue);
        cmd.AddValue("loss", "probability that a data packet is lost", loss);
        cmd.AddValue("mss", "payload bytes of a full segment", mss);
        cmd.AddValue("buffer", "bytes of each socket buffer", buffer);
        cmd.AddValue("duration", "simulated seconds", duration);
        cmd.AddValue("warmup", "seconds before goodput is counted", warmup);
        cmd.AddValue("run", "number of the random run", run);
        cmd.Parse(argc, argv);
    }
};

class Dumbbell {
  public:
    explicit Dumbbell(const Options& options) : m_options(options) {
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(options.mss));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(options.buffer));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(options.buffer));
        m_routers.Create(2);
        InternetStackHelper().Install(m_routers);
        m_addresses.SetBase("10.0.0.0", "255.255.255.0");
        const Time oneWay = MicroSeconds(options.rttMs * 500);
        auto bottleneck = Connect(m_routers.Get(0), m_routers.Get(1), options.bw, oneWay * 2 / 3, options.queue);
        if (options.loss > 0) {
            auto errors = CreateObject<RateErrorModel>();
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            errors->SetRate(options.loss);
            bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        }
        std::stringstream names(options.ccs);
        for (std::string cc; std::getline(names, cc, ',');)
            AddFlow(cc, oneWay / 6);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    }

    void Run() {
        Simulator::Schedule(Seconds(m_options.warmup), &Dumbbell::EndWarmup, this);
        Simulator::Stop(Seconds(m_options.duration));
        Simulator::Run();
    }

    void Print() const {
        const double measured = m_options.duration - m_options.warmup;
        uint64_t delivered = 0;
        std::printf("{\"version\": \"%d.%d\", \"goodput_mbps\": [", NS3_VERSION_MAJOR, NS3_VERSION_MINOR);
        for (size_t i = 0; i < m_sinks.size(); i++) {
            delivered += m_sinks[i]->GetTotalRx();
            const double bytes = m_sinks[i]->GetTotalRx() - m_beforeWarmup[i];
            std::printf("%s%.4f", i == 0 ? "" : ", ", bytes * 8e-6 / measured);
        }
        std::printf("], \"packets\": %lu, \"events\": %lu}\n", static_cast<unsigned long>(delivered / m_options.mss),
                    static_cast<unsigned long>(Simulator::GetEventCount()));
    }

  private:
    NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, const std::string& rate, Time delay, uint32_t packets) {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(rate));
        link.SetChannelAttribute("Delay", TimeValue(delay));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(PACKETS, packets)));
        auto devices = link.Install(a, b);
        m_lastAddresses = m_addresses.Assign(devices);
        m_addresses.NewNetwork();
        TrafficControlHelper().Uninstall(devices);
        return devices;
    }

    void AddFlow(const std::string& cc, Time accessDelay) {
        NodeContainer hosts;
        hosts.Create(2);
        InternetStackHelper().Install(hosts);
        Connect(hosts.Get(0), m_routers.Get(0), "10Gbps", accessDelay, 100000);
        Connect(m_routers.Get(1), hosts.Get(1), "10Gbps", accessDelay, 100000);
        const InetSocketAddress receiver(m_lastAddresses.GetAddress(1), 5000);
        auto type = TypeIdValue(TypeId::LookupByName("ns3::" + cc));
        hosts.Get(0)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", type);
        auto sink = PacketSinkHelper("ns3::TcpSocketFactory", receiver).Install(hosts.Get(1));
        m_sinks.push_back(DynamicCast<PacketSink>(sink.Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", receiver);
        bulk.SetAttribute("SendSize", UintegerValue(m_options.mss));
        bulk.Install(hosts.Get(0)).Start(MilliSeconds(1));
    }

    void EndWarmup() {
        for (const auto& sink : m_sinks)
            m_beforeWarmup.push_back(sink->GetTotalRx());
    }

    const Options m_options;
    NodeContainer m_routers;
    Ipv4AddressHelper m_addresses;
    Ipv4InterfaceContainer m_lastAddresses;
    std::vector<Ptr<PacketSink>> m_sinks;
    std::vector<uint64_t> m_beforeWarmup;
};

} // namespace

int main(int argc, char** argv) {
    Options options;
    options.Parse(argc, argv);
    RngSeedManager::SetRun(options.run);
    Dumbbell dumbbell(options);
    dumbbell.Run();
    dumbbell.Print();
    Simulator::Destroy();
}
