//! Errors as problem details (RFC 9457), which the standard requires for every error.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use rnis::mec::{ProblemDetails, Refusal};

/// An error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into() }
    }

    /// A parameter or body that is wrong.
    pub(super) fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn uri_too_long(most: usize) -> Problem {
        Problem::new(StatusCode::URI_TOO_LONG, format!("the query is longer than {most} bytes"))
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let details = ProblemDetails {
            // RFC 9457 4.2.1: the problem is what the status says.
            r#type: "about:blank".into(),
            title: self.status.canonical_reason().unwrap_or("Error").into(),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        json(self.status, "application/problem+json", &details)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let status = match refusal {
            Refusal::Full | Refusal::OwnerFull => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Expired => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::Unknown => StatusCode::NOT_FOUND,
            Refusal::OtherKind => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, refusal.to_string())
    }
}

/// Creates a response with a JSON body.
pub(super) fn json(status: StatusCode, content_type: &'static str, value: &impl serde::Serialize) -> Response<Body> {
    // All values have text keys only, so serialisation cannot fail.
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
