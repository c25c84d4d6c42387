//! Metrics for Prometheus, over HTTP.

use super::hub::Hub;
use crate::metrics::{self, Page};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
struct Told(Arc<Hub>);

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut page = Page(encoder);
        let load = |count: &AtomicU64| count.load(Relaxed);
        let inputs = self.0.inputs();
        let of_inputs = || inputs.iter().map(|input| ([("input", input.name.as_str())], input));
        let open = of_inputs().map(|(label, input)| (label, f64::from(u8::from(!input.has_ended.load(Relaxed)))));
        page.gauges("input_open", "1 until an input has ended, as a file does", open)?;
        let latest = of_inputs().map(|(label, input)| (label, load(&input.latest) as f64 * 1e-9));
        // Without a record, there is no time of it.
        let latest = latest.filter(|(_, time)| *time > 0.0);
        page.gauges("input_latest_record_timestamp_seconds", "When the latest record of an input arrived", latest)?;
        let records = of_inputs().map(|(label, input)| (label, load(&input.records)));
        page.counters("input_records", "Reports and events of an input", records)?;
        let faults = of_inputs().map(|(label, input)| (label, load(&input.faults)));
        page.counters("input_faults", "Faults of an input: what cannot be read, and failures to connect", faults)?;
        let (ues, cells) = self.0.answer(|state| (state.ues().count(), state.cells().count()));
        page.gauge("ues", "UEs that are known", ues as f64)?;
        page.gauge("cells", "Cells that are known", cells as f64)?;
        page.gauge("subscriptions", "Subscriptions", self.0.with_book(::rnis::mec::Book::len) as f64)?;
        let of = &self.0.counters;
        let results = [("delivered", &of.delivered), ("dropped", &of.dropped), ("undelivered", &of.undelivered)];
        let help = "Notifications that were delivered, dropped because others waited, or refused by their receiver";
        page.counters("notifications", help, results.map(|(result, count)| ([("result", result)], load(count))))?;
        let help = "Subscriptions removed because notifications could not be delivered";
        page.counter("subscriptions_removed", help, load(&of.removed) as f64)
    }
}

/// Returns the metrics of a service.
pub(super) fn text(hub: &Arc<Hub>) -> String {
    metrics::text("ranway_rnis", Told(hub.clone()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rnis::{CallbackPolicy, Limits, Log, intake::Intake};
    use ::rnis::{AddressMap, Network};

    /// The metrics of a service with an input that has sent a report.
    pub(crate) async fn example() -> String {
        let hub = Hub::new(
            Network::default(),
            AddressMap::default(),
            CallbackPolicy::default(),
            Limits::default(),
            Log::default(),
        );
        let (silent, heard) = (hub.add_input("srsran:gnb:8001"), hub.add_input("recording:-"));
        let text =
            br#"{"time_us":1,"interval_us":1,"cell":1,"rnti":61,"n_prb":6,"slots":1,"acked_bits":0,"blocks":0,"failed":0}"#;
        let record = ::rnis::feed::recording::parse_line(text).expect("it can be read");
        Intake::new(hub.clone(), heard.clone()).feed_paced(record).await;
        heard.has_ended.store(true, Relaxed);
        Intake::new(hub.clone(), silent).faults(&Log::default(), "it".into()).report("it does not answer");
        super::text(&hub)
    }

    #[tokio::test]
    async fn each_input_has_its_counters_and_the_time_of_its_latest_record() {
        let text = example().await;
        for line in [
            "ranway_rnis_input_open{input=\"srsran:gnb:8001\"} 1",
            "ranway_rnis_input_open{input=\"recording:-\"} 0",
            "ranway_rnis_input_records_total{input=\"recording:-\"} 1",
            "ranway_rnis_input_faults_total{input=\"srsran:gnb:8001\"} 1",
            "ranway_rnis_subscriptions 0",
            "ranway_rnis_notifications_total{result=\"dropped\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let times: Vec<&str> = text.lines().filter(|line| line.starts_with("ranway_rnis_input_latest")).collect();
        assert!(times.len() == 1 && times[0].contains("recording:-"), "{times:?}");
    }
}
