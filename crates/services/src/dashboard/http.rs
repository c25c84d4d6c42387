//! The resources of the dashboard.

use super::access::{Access, Purpose};
use super::hub::Hub;
use super::metrics;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The longest command.
const LONGEST_COMMAND: usize = 4_096;
/// The longest time for a command to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between signs of life to readers.
const ALIVE: Duration = Duration::from_secs(15);

/// Carries out a command, and returns its answer.
pub type Command = Box<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// What the handlers share.
pub(super) struct App {
    pub(super) hub: Arc<Hub>,
    pub(super) access: Access,
    pub(super) command: Option<Command>,
    /// The report, once it is written.
    pub(super) report: Arc<Mutex<Option<PathBuf>>>,
}

type Reply = Result<Response, (StatusCode, &'static str)>;

/// Creates the routes.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new().fallback(answer).with_state(app)
}

async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let reply = match (request.uri().path(), is_read) {
        ("/", true) => page(&app, &request),
        ("/events", true) => events(&app, &request),
        ("/metrics", true) => scrape(&app, &request),
        ("/report", true) => report(&app, &request),
        ("/control", false) if request.method() == Method::POST => control(&app, request).await,
        ("/" | "/events" | "/metrics" | "/report" | "/control", _) => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "this resource does not have this method\n"))
        }
        _ => Err((StatusCode::NOT_FOUND, "the page is at /, the metrics are at /metrics\n")),
    };
    let mut response = reply.unwrap_or_else(IntoResponse::into_response);
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    response.headers_mut().extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// The page. With the token in its address, it gives the browser a cookie and takes the token out of the address.
fn page(app: &App, request: &Request) -> Reply {
    let given = request.uri().query().and_then(|query| {
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token").map(|(_, token)| token)
    });
    if given.is_some_and(|token| app.access.is_token(&token)) {
        let to = [(header::LOCATION, HeaderValue::from_static("/")), (header::SET_COOKIE, app.access.cookie())];
        return Ok((StatusCode::SEE_OTHER, to).into_response());
    }
    app.access.check(request.headers(), Purpose::See)?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], app.hub.page()).into_response())
}

/// The stream of events: what the reader has missed, or everything, and then each batch.
fn events(app: &App, request: &Request) -> Reply {
    app.access.check(request.headers(), Purpose::See)?;
    let named = request.headers().get("last-event-id").and_then(|last| last.to_str().ok()).map(str::to_owned);
    let asked = || {
        let query = request.uri().query()?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == "after").map(|(_, last)| last.into_owned())
    };
    // Subscribed before the first look, so that nothing is missed in between.
    let newest = app.hub.subscribe();
    let (first, last) = app.hub.after(named.or_else(asked).as_deref());
    app.hub.readers.fetch_add(1, Ordering::Relaxed);
    let begun = [Bytes::from_static(b"retry: 1000\n\n"), first].into_iter();
    let reader = Reader { hub: app.hub.clone(), newest, begun, last };
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let events = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(events), reader))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(stream)).into_response())
}

struct Reader {
    hub: Arc<Hub>,
    newest: watch::Receiver<u64>,
    /// What it gets first.
    begun: std::array::IntoIter<Bytes, 2>,
    last: u64,
}

impl Reader {
    /// Waits for new events. There is no end: the reader goes when it has what it wants, such as the report.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(begun) = self.begun.find(|part| !part.is_empty()) {
            return Some(begun);
        }
        loop {
            self.newest.borrow_and_update();
            if let Some((events, last)) = self.hub.next(self.last) {
                self.last = last;
                return Some(events);
            }
            match timeout(ALIVE, self.newest.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.hub.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

fn scrape(app: &App, request: &Request) -> Reply {
    app.access.check(request.headers(), Purpose::See)?;
    Ok(([(header::CONTENT_TYPE, crate::metrics::CONTENT)], metrics::text(&app.hub)).into_response())
}

/// The report that the run has written.
fn report(app: &App, request: &Request) -> Reply {
    app.access.check(request.headers(), Purpose::See)?;
    let path = app.report.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let report = path.and_then(|path| std::fs::read(path).ok());
    let report = report.ok_or((StatusCode::NOT_FOUND, "there is no report yet\n"))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], report).into_response())
}

async fn control(app: &Arc<App>, request: Request) -> Reply {
    app.access.check(request.headers(), Purpose::Command)?;
    if app.command.is_none() {
        return Err((StatusCode::NOT_FOUND, "there is nothing to control here\n"));
    }
    let body = timeout(BODY_TIMEOUT, to_bytes(request.into_body(), LONGEST_COMMAND)).await;
    let body = body.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the command did not arrive in time\n"))?;
    let body = body.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, "a command has at most 4096 bytes\n"))?;
    let line = String::from_utf8(body.to_vec()).map_err(|_| (StatusCode::BAD_REQUEST, "a command is UTF-8 text\n"))?;
    let shared = app.clone();
    let obeyed = tokio::task::spawn_blocking(move || {
        let done = shared.command.as_ref().map(|command| command(line.trim()));
        (line, done)
    });
    let Ok((line, Some(done))) = obeyed.await else {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "the command failed\n"));
    };
    app.hub.with(|board| {
        let t_s = board.live().t_s;
        let (line, refused) = (line.trim(), done.as_ref().err().map(|why| format!(": {why}")));
        board.note(t_s, format!("command `{line}`{}", refused.unwrap_or_default()));
    });
    Ok(match done {
        Ok(answer) => answer.into_response(),
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    })
}
