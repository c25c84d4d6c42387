// TCP over one LTE cell in ns-3: a bulk download for each UE, or, with --four, a bulk and an on-off flow in each
// direction for each UE. Prints one line of JSON. `--help` lists the options.
//
// A server with a 10 Gbit/s link and a delay of 10 ms, the evolved packet core without delays, one eNodeB at a height of
// 30 m, UEs that stand at one distance, free space, no fading, a proportional fair scheduler.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/version-defines.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace {

struct Options {
    std::string cc = "TcpCubic";
    std::string rlc = "am";
    std::string scheduler = "ns3::PfFfMacScheduler";
    bool four = false;
    bool delays = false;
    uint32_t prbs = 100;
    uint32_t ues = 1;
    uint32_t mss = 1400;
    uint32_t queue = 1000000;
    uint32_t buffer = 6000000;
    double distance = 100;
    double duration = 20;
    double warmup = 5;
    uint32_t run = 1;

    void Parse(int argc, char** argv) {
        CommandLine cmd;
        cmd.AddValue("cc", "ns-3 congestion control", cc);
        cmd.AddValue("rlc", "am or um", rlc);
        cmd.AddValue("scheduler", "ns-3 MAC scheduler", scheduler);
        cmd.AddValue("four", "bulk and on-off flows in both directions instead of a bulk download", four);
        cmd.AddValue("delays", "also measure one-way delays (a flow monitor: slower)", delays);
        cmd.AddValue("prbs", "resource blocks of each carrier", prbs);
        cmd.AddValue("ues", "UEs", ues);
        cmd.AddValue("mss", "payload bytes of a full segment", mss);
        cmd.AddValue("queue", "bytes that each RLC queue holds", queue);
        cmd.AddValue("buffer", "bytes of each socket buffer", buffer);
        cmd.AddValue("distance", "metres from the eNodeB to each UE", distance);
        cmd.AddValue("duration", "simulated seconds", duration);
        cmd.AddValue("warmup", "seconds before goodput is counted", warmup);
        cmd.AddValue("run", "number of the random run", run);
        cmd.Parse(argc, argv);
    }
};

struct Flow {
    std::string kind;
    uint16_t port;
    Ptr<PacketSink> sink;
    uint64_t beforeWarmup = 0;
};

class Cell {
  public:
    explicit Cell(const Options& options) : m_options(options) {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + options.cc)));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(options.mss));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(options.buffer));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(options.buffer));
        Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(options.queue));
        Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(options.queue));
        auto mode = options.rlc == "am" ? LteEnbRrc::RLC_AM_ALWAYS : LteEnbRrc::RLC_UM_ALWAYS;
        Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(mode));
        m_lte->SetEpcHelper(m_epc);
        m_lte->SetSchedulerType(options.scheduler);
        m_lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(options.prbs));
        m_lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(options.prbs));
        AddServer();
        AddCell();
        for (uint32_t ue = 0; ue < options.ues; ue++)
            AddFlows(ue);
    }

    void Run() {
        FlowMonitorHelper helper;
        Ptr<FlowMonitor> monitor;
        if (m_options.delays) {
            monitor = helper.Install(NodeContainer(m_server, m_ues));
            monitor->SetAttribute("DelayBinWidth", DoubleValue(0.001));
        }
        Simulator::Schedule(Seconds(m_options.warmup), &Cell::EndWarmup, this);
        Simulator::Stop(Seconds(m_options.duration));
        Simulator::Run();
        if (monitor)
            ReadDelays(*monitor, *DynamicCast<Ipv4FlowClassifier>(helper.GetClassifier()));
    }

    void Print() const {
        uint64_t bytes = 0;
        for (const auto& flow : m_flows)
            bytes += flow.sink->GetTotalRx();
        std::printf("{\"version\": \"%d.%d\", \"packets\": %lu, \"goodput_mbps\": [", NS3_VERSION_MAJOR, NS3_VERSION_MINOR,
                    static_cast<unsigned long>(bytes / m_options.mss));
        std::map<std::string, std::pair<double, int>> kinds;
        for (size_t i = 0; i < m_flows.size(); i++) {
            const auto& flow = m_flows[i];
            auto measured = flow.sink->GetTotalRx() - flow.beforeWarmup;
            double mbps = measured * 8e-6 / (m_options.duration - m_options.warmup);
            std::printf("%s%.6f", i ? ", " : "", mbps);
            kinds[flow.kind].first += mbps;
            kinds[flow.kind].second++;
        }
        std::printf("], \"kinds\": {");
        const char* comma = "";
        for (const auto& [kind, sum] : kinds) {
            std::printf("%s\"%s\": {\"goodput_mbps\": %.6f", comma, kind.c_str(), sum.first / sum.second);
            auto delays = m_delays.find(kind);
            if (delays != m_delays.end())
                for (double share : {0.05, 0.5, 0.95})
                    std::printf(", \"owd_p%.0f_ms\": %.1f", share * 100, Quantile(delays->second, share));
            std::printf("}");
            comma = ", ";
        }
        std::printf("}}\n");
    }

  private:
    using Bins = std::map<uint32_t, uint64_t>;

    void AddServer() {
        m_server.Create(1);
        InternetStackHelper().Install(m_server);
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
        link.SetDeviceAttribute("Mtu", UintegerValue(1500));
        link.SetChannelAttribute("Delay", StringValue("10ms"));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
        auto devices = link.Install(m_epc->GetPgwNode(), m_server.Get(0));
        Ipv4AddressHelper addresses;
        addresses.SetBase("1.0.0.0", "255.0.0.0");
        m_serverAddress = addresses.Assign(devices).GetAddress(1);
        TrafficControlHelper().Uninstall(devices);
        Ipv4StaticRoutingHelper routing;
        auto table = routing.GetStaticRouting(m_server.Get(0)->GetObject<Ipv4>());
        table->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    }

    void AddCell() {
        NodeContainer enb;
        enb.Create(1);
        m_ues.Create(m_options.ues);
        auto positions = CreateObject<ListPositionAllocator>();
        positions->Add(Vector(0, 0, 30));
        for (uint32_t ue = 0; ue < m_options.ues; ue++)
            positions->Add(Vector(m_options.distance, 0, 1.5));
        MobilityHelper mobility;
        mobility.SetPositionAllocator(positions);
        mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
        mobility.Install(enb);
        mobility.Install(m_ues);
        auto cells = m_lte->InstallEnbDevice(enb);
        auto devices = m_lte->InstallUeDevice(m_ues);
        InternetStackHelper().Install(m_ues);
        m_ueAddresses = m_epc->AssignUeIpv4Address(devices);
        Ipv4StaticRoutingHelper routing;
        for (uint32_t ue = 0; ue < m_options.ues; ue++) {
            auto table = routing.GetStaticRouting(m_ues.Get(ue)->GetObject<Ipv4>());
            table->SetDefaultRoute(m_epc->GetUeDefaultGatewayAddress(), 1);
            m_lte->Attach(devices.Get(ue), cells.Get(0));
        }
    }

    void AddFlows(uint32_t ue) {
        auto server = m_server.Get(0);
        auto phone = m_ues.Get(ue);
        auto address = m_ueAddresses.GetAddress(ue);
        auto port = static_cast<uint16_t>(10000 + ue * 10);
        AddFlow("bulk-down", server, phone, address, port, false);
        if (m_options.four) {
            AddFlow("bulk-up", phone, server, m_serverAddress, port + 1, false);
            AddFlow("small-down", server, phone, address, port + 2, true);
            AddFlow("small-up", phone, server, m_serverAddress, port + 3, true);
        }
    }

    void AddFlow(const std::string& kind, Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, bool onOff) {
        InetSocketAddress any(Ipv4Address::GetAny(), port);
        auto sink = PacketSinkHelper("ns3::TcpSocketFactory", any).Install(to);
        InetSocketAddress peer(address, port);
        ApplicationContainer source;
        if (onOff) {
            OnOffHelper helper("ns3::TcpSocketFactory", peer);
            helper.SetAttribute("DataRate", StringValue("500kbps"));
            helper.SetAttribute("PacketSize", UintegerValue(m_options.mss));
            helper.SetAttribute("OnTime", StringValue("ns3::ConstantRandomVariable[Constant=1]"));
            helper.SetAttribute("OffTime", StringValue("ns3::ConstantRandomVariable[Constant=1]"));
            source = helper.Install(from);
        } else {
            BulkSendHelper helper("ns3::TcpSocketFactory", peer);
            helper.SetAttribute("SendSize", UintegerValue(m_options.mss));
            source = helper.Install(from);
        }
        source.Start(Seconds(m_options.four ? m_start->GetValue(0.5, 1.5) : 0.5));
        m_flows.push_back({kind, port, DynamicCast<PacketSink>(sink.Get(0))});
    }

    void EndWarmup() {
        for (auto& flow : m_flows)
            flow.beforeWarmup = flow.sink->GetTotalRx();
    }

    void ReadDelays(FlowMonitor& monitor, Ipv4FlowClassifier& classifier) {
        for (const auto& [id, stats] : monitor.GetFlowStats()) {
            auto port = classifier.FindFlow(id).destinationPort;
            for (const auto& flow : m_flows) {
                if (flow.port != port)
                    continue;
                auto histogram = stats.delayHistogram;
                for (uint32_t bin = 0; bin < histogram.GetNBins(); bin++)
                    if (histogram.GetBinCount(bin))
                        m_delays[flow.kind][bin] += histogram.GetBinCount(bin);
            }
        }
    }

    static double Quantile(const Bins& bins, double share) {
        uint64_t all = 0, seen = 0;
        for (const auto& bin : bins)
            all += bin.second;
        for (const auto& [bin, count] : bins) {
            seen += count;
            if (static_cast<double>(seen) >= share * static_cast<double>(all))
                return bin + 0.5;
        }
        return -1;
    }

    const Options m_options;
    Ptr<LteHelper> m_lte = CreateObject<LteHelper>();
    Ptr<PointToPointEpcHelper> m_epc = CreateObject<PointToPointEpcHelper>();
    Ptr<UniformRandomVariable> m_start = CreateObject<UniformRandomVariable>();
    NodeContainer m_server;
    NodeContainer m_ues;
    Ipv4Address m_serverAddress;
    Ipv4InterfaceContainer m_ueAddresses;
    std::vector<Flow> m_flows;
    std::map<std::string, Bins> m_delays;
};

} // namespace

int main(int argc, char** argv) {
    Options options;
    options.Parse(argc, argv);
    RngSeedManager::SetRun(options.run);
    Cell cell(options);
    cell.Run();
    cell.Print();
    Simulator::Destroy();
}
