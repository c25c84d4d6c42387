//! A download by QUIC, for `rapid_lab.py`: `quic serve PORT CC CERTIFICATE` sends without end on each stream, with `cubic` or
//! `bbr`, and leaves its certificate in a file; `quic get HOST:PORT SECONDS CERTIFICATE` reads from it for some time.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process};

type Outcome = Result<(), Box<dyn Error>>;

const NAME: &str = "server";
/// Bytes of UDP payload in a packet of 1400 bytes.
const PAYLOAD: u16 = 1372;
/// The receive window in bytes: no limit in this cell.
const WINDOW: u32 = 8_000_000;

/// Packets of one length, each on its own, as the simulation has them.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(PAYLOAD)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .send_window(WINDOW.into())
        .receive_window(VarInt::from_u32(WINDOW))
        .stream_receive_window(VarInt::from_u32(WINDOW));
    transport
}

async fn serve(port: &str, cc: &str, certificate: &str) -> Outcome {
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match cc {
        "cubic" => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        other => return Err(format!("`{other}` is no congestion control: cubic or bbr").into()),
    };
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key)?;
    let mut transport = transport();
    transport.congestion_controller_factory(controller);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, port.parse()?).into())?;
    fs::write(certificate, made.cert.der())?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                send(connection).await;
            }
        });
    }
    Ok(())
}

async fn send(connection: Connection) {
    let block = vec![0; 1 << 16];
    while let Ok((mut stream, _)) = connection.accept_bi().await {
        while stream.write_all(&block).await.is_ok() {}
    }
}

async fn get(server: &str, seconds: &str, certificate: &str) -> Outcome {
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let server = server.to_socket_addrs()?.find(SocketAddr::is_ipv4).ok_or("the server has no IPv4 address")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(certificate)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport()));
    let mut endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(server, NAME)?.await?;
    let (mut asking, mut reading) = connection.open_bi().await?;
    asking.write_all(b"?").await?;
    let mut block = vec![0; 1 << 16];
    let read = async { while let Ok(Some(_)) = reading.read(&mut block).await {} };
    // It ends without a farewell: the lab would measure the silence after it.
    tokio::time::timeout(seconds, read).await.map_or(Ok(()), |()| Err("the server ended".into()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port, cc, certificate] => serve(port, cc, certificate).await,
        ["get", server, seconds, certificate] => get(server, seconds, certificate).await,
        _ => Err("quic serve PORT CC CERTIFICATE, or quic get HOST:PORT SECONDS CERTIFICATE".into()),
    };
    if let Err(error) = outcome {
        eprintln!("quic: {error}");
        process::exit(1);
    }
    // Without waiting for connections to close.
    process::exit(0);
}
