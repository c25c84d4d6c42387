//! The resources of MEC 012 (clause 7) over HTTP.

use super::callback::{Refused, Target};
use super::hub::{Bearer, Hub, Requester};
use super::problem::{Problem, json};
use super::query::{Parameters, RAB_INFO};
use super::websocket;
use crate::clock::unix_now;
use crate::secret;
use crate::server::{Busy, Hosts, Network, Peer, Site};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, Path, Request, State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, uri::Authority};
use axum::middleware::{self, Next};
use axum::routing::get;
use rnis::mec::{
    Delivery, Entry, Id, LinkType, Subscription, SubscriptionLink, SubscriptionLinkList, SubscriptionLinks, answer,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The longest body of a request.
pub(super) const LONGEST_BODY: usize = 64 * 1024;
/// The longest time that a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The most WebSockets, in all and of one client.
const MOST_SOCKETS: usize = 768;
/// See [`MOST_SOCKETS`].
const MOST_SOCKETS_OF_SITE: usize = 64;
/// The path of the service below the API root.
const BASE: &str = "/rni/v2";

/// What handlers share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) hub: Arc<Hub>,
    pub(super) address: SocketAddr,
    /// The API root as clients see it, if it is not the host that they name.
    pub(super) root: Option<String>,
    pub(super) requests: AtomicU64,
    pub(super) hosts: Hosts,
    /// Reverse proxies, which tell the addresses of clients.
    pub(super) proxies: Vec<Network>,
    pub(super) sockets: Arc<Sockets>,
}

/// The number of WebSockets of each client.
#[derive(Debug, Default)]
pub(super) struct Sockets(Mutex<BTreeMap<Site, usize>>);

/// A WebSocket that counts until it is dropped.
struct Counted {
    sockets: Arc<Sockets>,
    site: Site,
}

impl Sockets {
    fn open(sockets: &Arc<Sockets>, site: Site) -> Option<Counted> {
        let mut counts = sockets.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.values().sum::<usize>() >= MOST_SOCKETS
            || counts.get(&site).is_some_and(|&n| n >= MOST_SOCKETS_OF_SITE)
        {
            return None;
        }
        *counts.entry(site).or_default() += 1;
        drop(counts);
        Some(Counted { sockets: sockets.clone(), site })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.sockets.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.site) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.site);
            }
        }
    }
}

/// Refuses requests that name another host, and those of pages of other sites that could change something or read notifications.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    let refused = |detail| Problem::new(StatusCode::FORBIDDEN, detail).into_response();
    let headers = request.headers();
    if !app.hosts.accept(headers) {
        return refused("the service has no such name; the operator adds names with --host");
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    if !reads && !app.hosts.is_own(headers) {
        return refused("the request comes from a page of another site");
    }
    next.run(request).await
}

/// Returns the address of the client behind reverse proxies (`X-Forwarded-For`): the last one that is not that of a proxy. Whatever
/// stands before it was written by the client.
fn forwarded(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let is_proxy = |address: IpAddr| proxies.iter().any(|network| network.contains(address));
    let mut address = peer;
    let values = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    for hop in hops.into_iter().rev() {
        if !is_proxy(address) {
            break;
        }
        let Ok(next) = hop.parse() else { break };
        address = next;
    }
    address
}

fn bearer(request: &Request) -> Option<Bearer> {
    secret::bearer(request.headers()).map(|token| Bearer(token.to_owned()))
}

type Reply = Result<Response<Body>, Problem>;

/// Creates the routes; `prefix` is the path of the API root.
pub(super) fn router(app: Arc<App>, prefix: &str) -> Router {
    let path = |rest: &str| format!("{prefix}{BASE}{rest}");
    Router::new()
        .route(&path("/queries/rab_info"), get(rab_info))
        .route(&path("/queries/plmn_info"), get(plmn_info))
        .route(&path("/queries/s1_bearer_info"), get(s1_bearer_info))
        .route(&path("/queries/layer2_meas"), get(layer2_meas))
        .route(&path("/subscriptions"), get(list).post(create))
        .route(&path("/subscriptions/{id}"), get(read).put(update).delete(delete))
        .route(&path("/websocket/{id}"), get(connect))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such resource").into_response())
        .method_not_allowed_fallback(async || {
            let detail = "the resource does not have this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
        })
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

fn respond(reply: Reply) -> Response<Body> {
    reply.unwrap_or_else(Problem::into_response)
}

/// Checks that the client accepts JSON, and parses the parameters.
fn parameters(request: &Request, known: &[&str]) -> Result<Parameters, Problem> {
    acceptable(request.headers())?;
    Parameters::parse(request.uri().query(), known)
}

fn acceptable(headers: &HeaderMap) -> Result<(), Problem> {
    let mut ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if ranges.peek().is_none() {
        return Ok(());
    }
    let fits = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = parts.any(|part| matches!(part.strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000")));
        !refused && ["application/json", "application/*", "*/*"].contains(&media.as_str())
    };
    if ranges.flat_map(|value| value.split(',')).any(fits) {
        Ok(())
    } else {
        Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "the service sends application/json only"))
    }
}

async fn rab_info(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond((|| {
        let parameters = parameters(&request, &RAB_INFO)?;
        let (selection, bearers) = (parameters.selection()?, parameters.bearers()?);
        let app_id = parameters.text("app_ins_id")?.unwrap_or_default().to_owned();
        let number = app.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let hub = &app.hub;
        let info = hub.answer(|state| {
            let ids = (app_id, number.to_string());
            answer::rab_info((state, &hub.network), &selection, &bearers, ids, unix_now())
        });
        Ok(json(StatusCode::OK, "application/json", &info))
    })())
}

async fn plmn_info(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond((|| {
        let parameters = parameters(&request, &["app_ins_id"])?;
        let ids = parameters.list("app_ins_id")?;
        let ids = ids.ok_or_else(|| Problem::invalid("the parameter `app_ins_id` is missing"))?;
        let ids = ids.into_iter().map(ToOwned::to_owned).collect();
        let info = answer::plmn_info(&app.hub.network, ids, unix_now());
        Ok(json(StatusCode::OK, "application/json", &info))
    })())
}

async fn s1_bearer_info(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond((|| {
        let known =
            ["temp_ue_id", "ue_ipv4_address", "ue_ipv6_address", "nated_ip_address", "gtp_teid", "cell_id", "erab_id"];
        let parameters = parameters(&request, &known)?;
        let (selection, erabs) = (parameters.selection()?, parameters.numbers("erab_id")?);
        let hub = &app.hub;
        let info =
            hub.answer(|state| answer::s1_bearer_info((state, &hub.network), &selection, erabs.as_deref(), unix_now()));
        let info =
            info.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no S1 bearer is known that was asked for"))?;
        Ok(json(StatusCode::OK, "application/json", &info))
    })())
}

async fn layer2_meas(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond((|| {
        let known = ["app_ins_id", "cell_id", "ue_ipv4_address", "ue_ipv6_address", "nated_ip_address", "gtp_teid"];
        let parameters = parameters(&request, &known)?;
        let (selection, names) = (parameters.selection()?, parameters.layer2()?);
        let hub = &app.hub;
        let measurements =
            hub.answer(|state| answer::layer2_meas((state, &hub.network), &selection, &names, unix_now()));
        Ok(json(StatusCode::OK, "application/json", &measurements))
    })())
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond((|| {
        let parameters = parameters(&request, &["subscription_type"])?;
        let kind = parameters.kind()?;
        // The identifiers are secrets, so a client without a token cannot be shown any.
        let own = bearer(&request).map(|bearer| app.hub.of_bearer(&bearer, kind)).unwrap_or_default();
        let link = |entry: Entry| SubscriptionLink {
            href: entry.this,
            subscription_type: entry.subscription.kind.subscription_type(),
        };
        let subscription = own.into_iter().map(link).collect();
        let this = LinkType { href: format!("{}/subscriptions", app.base(request.headers())) };
        let list = SubscriptionLinkList { links: SubscriptionLinks { this, subscription } };
        Ok(json(StatusCode::OK, "application/json", &list))
    })())
}

async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond(app.create(request).await)
}

async fn read(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    respond((|| {
        parameters(&request, &[])?;
        let (_, entry) = app.own(&id, &request)?;
        Ok(json(StatusCode::OK, "application/json", &to_json(&entry)))
    })())
}

async fn update(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    respond(app.update(&id, request).await)
}

async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    respond((|| {
        let (id, _) = app.own(&id, &request)?;
        if !app.hub.unsubscribe(id) {
            return Err(unknown());
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    })())
}

/// Connects a WebSocket for the notifications of a subscription. Pages of browsers cannot send a bearer token with it, so the secret
/// identifier in its URI is what lets a consumer in.
async fn connect(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    respond(app.connect(&id, request).await)
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such subscription")
}

/// Parses the identifier of a subscription; anything else is the name of none.
fn identifier(id: &str) -> Result<Id, Problem> {
    id.parse().map_err(|_| unknown())
}

fn to_json(entry: &Entry) -> serde_json::Value {
    let uri = match entry.delivery {
        Delivery::Callback => None,
        Delivery::WebSocket => Some(websocket_uri(&entry.this)),
    };
    entry.subscription.to_json(&entry.this, uri.as_deref())
}

/// Returns the URI of a subscription's WebSocket, from the subscription's link.
fn websocket_uri(this: &str) -> String {
    let (base, id) = this.rsplit_once("/subscriptions/").unwrap_or((this, ""));
    format!("{}/websocket/{id}", base.replacen("http", "ws", 1))
}

impl App {
    /// Returns the URI of the service: below the configured API root, or else below the host that the client named.
    fn base(&self, headers: &HeaderMap) -> String {
        if let Some(root) = &self.root {
            return format!("{root}{BASE}");
        }
        let named = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(|host| host.len() < 256);
        let named = named.and_then(|host| host.parse::<Authority>().ok()).filter(|host| !host.as_str().contains('@'));
        match named {
            Some(host) => format!("http://{host}{BASE}"),
            None => format!("http://{}{BASE}", self.address),
        }
    }

    /// Returns a subscription that the client may see and change.
    fn own(&self, id: &str, request: &Request) -> Result<(Id, Entry), Problem> {
        let id = identifier(id)?;
        let entry = self.hub.with_book(|book| book.get(id).cloned()).ok_or_else(unknown)?;
        if self.hub.may(id, bearer(request).as_ref()) { Ok((id, entry)) } else { Err(unknown()) }
    }

    fn requester(&self, request: &Request) -> Result<Requester, Problem> {
        Ok(Requester { address: self.client(request)?.0, bearer: bearer(request) })
    }

    /// Returns the address of the client, and what keeps its connection counted.
    fn client(&self, request: &Request) -> Result<(IpAddr, Busy), Problem> {
        let peer = request.extensions().get::<Peer>().cloned();
        let unknown = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the client's address is unknown");
        let Peer { address, busy } = peer.ok_or_else(unknown)?;
        Ok((forwarded(address.ip(), request.headers(), &self.proxies), busy))
    }

    async fn connect(&self, id: &str, request: Request) -> Reply {
        let id = identifier(id)?;
        let outbox = self.hub.websocket_outbox(id).ok_or_else(unknown)?;
        let (address, busy) = self.client(&request)?;
        let (mut parts, _) = request.into_parts();
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, self).await;
        let upgrade = upgrade.map_err(|why| Problem::new(why.status(), why.body_text()))?;
        let counted = Sockets::open(&self.sockets, Site::of(address))
            .ok_or_else(|| Problem::new(StatusCode::TOO_MANY_REQUESTS, "this client has its maximum of WebSockets"))?;
        Ok(websocket::upgrade(upgrade, outbox, self.hub.counters.clone(), (counted, busy)))
    }

    async fn create(&self, request: Request) -> Reply {
        acceptable(request.headers())?;
        let base = self.base(request.headers());
        let requester = self.requester(&request)?;
        let (subscription, target) = self.subscription(request).await?;
        let random = secret::random().map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers for an identifier")
        })?;
        let id = Id::new(random);
        let entry = self.hub.subscribe(subscription, target, &requester, (id, format!("{base}/subscriptions/{id}")))?;
        let mut response = json(StatusCode::CREATED, "application/json", &to_json(&entry));
        if let Ok(location) = HeaderValue::from_str(&entry.this) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        Ok(response)
    }

    async fn update(&self, id: &str, request: Request) -> Reply {
        acceptable(request.headers())?;
        let (id, entry) = self.own(id, &request)?;
        let requester = self.requester(&request)?;
        let (subscription, target) = self.subscription(request).await?;
        let suffix = format!("{BASE}/subscriptions/{id}");
        match &subscription.this {
            Some(this) if *this == entry.this || this.ends_with(&suffix) => {}
            Some(_) => return Err(Problem::invalid("`_links.self` is another subscription")),
            None => return Err(Problem::invalid("`_links.self` is missing")),
        }
        let entry = self.hub.replace(id, subscription, target, &requester)?;
        Ok(json(StatusCode::OK, "application/json", &to_json(&entry)))
    }

    /// Reads and checks the subscription in a request, and decides how it is delivered: by the callback if there is one that
    /// the operator allows, otherwise by WebSocket if the consumer asks for that.
    async fn subscription(&self, request: Request) -> Result<(Subscription, Option<Target>), Problem> {
        let body = body(request).await?;
        let subscription = Subscription::parse(&body).map_err(|why| Problem::invalid(why.0))?;
        let target = subscription.callback.as_deref().map(|uri| Target::parse(uri, &self.hub.policy));
        match target {
            None => Ok((subscription, None)),
            Some(Ok(target)) => Ok((subscription, Some(target))),
            Some(Err(_)) if subscription.websocket => Ok((subscription, None)),
            Some(Err(Refused::Invalid(why))) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
            Some(Err(Refused::Forbidden)) => {
                let detail = "the operator does not allow callbacks to this host (--callback-network); a WebSocket needs no permission";
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
        }
    }
}

/// Reads the body of a request, which must be JSON.
async fn body(request: Request) -> Result<Bytes, Problem> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    let too_long = || {
        let detail = format!("the body is longer than {LONGEST_BODY} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > LONGEST_BODY as u64) {
        return Err(too_long());
    }
    let read = timeout(BODY_TIMEOUT, to_bytes(request.into_body(), LONGEST_BODY)).await;
    let read = read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"))?;
    read.map_err(|why| {
        let is_long = std::error::Error::source(&why)
            .is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>);
        if is_long { too_long() } else { Problem::invalid("the body could not be read") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proxy_is_believed_what_it_forwards() {
        let proxies = ["127.0.0.1".parse().expect("a network"), "10.0.0.0/8".parse().expect("a network")];
        let of = |peer: &str, forwarded_for: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in forwarded_for {
                headers.append("x-forwarded-for", value.parse().expect("a value"));
            }
            forwarded(peer.parse().expect("an address"), &headers, &proxies).to_string()
        };
        assert_eq!(of("192.0.2.1", &["198.51.100.1"]), "192.0.2.1", "it is no proxy");
        assert_eq!(of("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(of("127.0.0.1", &["203.0.113.9, 198.51.100.1"]), "198.51.100.1", "the client wrote the first");
        assert_eq!(of("127.0.0.1", &["203.0.113.9", "198.51.100.1, 10.0.0.7"]), "198.51.100.1");
        assert_eq!(of("127.0.0.1", &["203.0.113.9, unknown"]), "127.0.0.1");
    }
}
