//! The least an intercepting proxy can be with hudsucker (hyper, rustls, aws-lc): one header is set, nothing is decided
//! or recorded.
//! usage: least PORT CA.pem CA.key ORIGIN-CA.pem VALUE
use hudsucker::certificate_authority::RcgenAuthority;
use hudsucker::hyper::header::{HeaderValue, AUTHORIZATION};
use hudsucker::hyper::{Method, Request};
use hudsucker::rcgen::{Issuer, KeyPair};
use hudsucker::{Body, HttpContext, HttpHandler, Proxy, RequestOrResponse};
use hyper_rustls::HttpsConnectorBuilder;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{pem::PemObject, CertificateDer};
use rustls::{ClientConfig, RootCertStore};
use std::{env, error::Error, fs, sync::Arc};

#[derive(Clone)]
struct SetsHeader {
    value: HeaderValue,
}

impl HttpHandler for SetsHeader {
    async fn handle_request(&mut self, _: &HttpContext, mut request: Request<Body>) -> RequestOrResponse {
        if request.method() != Method::CONNECT {
            request.headers_mut().insert(AUTHORIZATION, self.value.clone());
        }
        request.into()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [port, authority, key, trusted, value] = &arguments[..] else {
        return Err("usage: least PORT CA.pem CA.key ORIGIN-CA.pem VALUE".into());
    };
    let key = KeyPair::from_pem(&fs::read_to_string(key)?)?;
    let issuer = Issuer::from_ca_cert_pem(&fs::read_to_string(authority)?, key)?;
    let mut roots = RootCertStore::empty();
    for one in CertificateDer::pem_file_iter(trusted)? {
        roots.add(one?)?;
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
    let handler = SetsHeader { value: HeaderValue::from_str(value)? };
    Proxy::builder()
        .with_addr(([127, 0, 0, 1], port.parse()?).into())
        .with_ca(RcgenAuthority::new(issuer, 1_000, default_provider()))
        .with_http_connector(connector)
        .with_http_handler(handler)
        .build()?
        .start()
        .await?;
    Ok(())
}
