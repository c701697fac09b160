//! Why a broker's certificate is not trusted: librdkafka says the same for an unknown authority, a wrong host name and an
//! expired certificate, but hands OpenSSL's own code to a callback.
//!
//! The callback can be set only through the C interface, hence a client of its own that lives for one handshake.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicI32, Ordering},
    time::{Duration, Instant},
};

use dlo_core::{Error, ErrorKind};
use rdkafka::bindings as c;

use crate::config::Settings;

/// Connects once and gives the error for OpenSSL's reason; `None` when the certificate is fine or nothing was found out.
pub(crate) fn why_not_trusted(settings: &Settings, patience: Duration) -> Option<Error> {
    let reason = Box::new(AtomicI32::new(0));
    let config = settings.base().create_native_config().ok()?;
    // SAFETY: `config` is a live configuration; the library gets a copy of it, so ours is destroyed as usual. `reason`
    // outlives the client, which is destroyed (and its threads joined) before this function returns.
    unsafe {
        let copy = c::rd_kafka_conf_dup(config.ptr());
        c::rd_kafka_conf_set_opaque(copy, ptr::from_ref(&*reason).cast_mut().cast());
        c::rd_kafka_conf_set_ssl_cert_verify_cb(copy, Some(remember_reason));
        c::rd_kafka_conf_set_log_cb(copy, Some(be_silent));
        let mut text = [0 as c_char; 256];
        let client = c::rd_kafka_new(
            c::rd_kafka_type_t::RD_KAFKA_CONSUMER,
            copy,
            text.as_mut_ptr(),
            text.len(),
        );
        if client.is_null() {
            c::rd_kafka_conf_destroy(copy);
            return None;
        }
        wait_for(client, &reason, patience);
        c::rd_kafka_destroy(client);
    }
    explain(reason.load(Ordering::Relaxed))
}

/// Asks for metadata, which makes the library connect, until a reason is there or the time is over.
unsafe fn wait_for(client: *mut c::rd_kafka_t, reason: &AtomicI32, patience: Duration) {
    let until = Instant::now() + patience;
    while reason.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        let mut metadata = ptr::null();
        // SAFETY: `client` is alive, and metadata that was given is destroyed once.
        unsafe {
            c::rd_kafka_metadata(client, 0, ptr::null_mut(), &mut metadata, 100);
            if !metadata.is_null() {
                c::rd_kafka_metadata_destroy(metadata);
                return;
            }
            c::rd_kafka_poll(client, 0);
        }
    }
}

/// Keeps OpenSSL's verification code and lets the handshake fail as it would have.
unsafe extern "C" fn remember_reason(
    _: *mut c::rd_kafka_t,
    _: *const c_char,
    _: i32,
    x509_error: *mut c_int,
    _: c_int,
    _: *const c_char,
    _: usize,
    _: *mut c_char,
    _: usize,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: the library hands over a valid pointer to the code and the opaque that was set, an AtomicI32 that lives.
    let (code, reason) = unsafe { (*x509_error, &*opaque.cast::<AtomicI32>()) };
    if code != 0 {
        let _ = reason.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
    c_int::from(code == 0)
}

unsafe extern "C" fn be_silent(
    _: *const c::rd_kafka_t,
    _: c_int,
    _: *const c_char,
    _: *const c_char,
) {
}

/// The codes are those of OpenSSL's `X509_V_ERR_…` (x509_vfy.h), which are part of its stable interface.
fn explain(code: i32) -> Option<Error> {
    let error = |what: &str, advice: &str| {
        Some(Error::new(ErrorKind::Unauthenticated, "connect", what).advise(advice))
    };
    match code {
        0 => None,
        9 => error(
            "the certificate of the broker is not valid yet",
            "Check the clocks of both machines.",
        ),
        10 => error(
            "the certificate of the broker has expired",
            "Ask the owner of the cluster to renew it, and check this machine's clock.",
        ),
        18..=21 | 2 => error(
            "the authority that signed the certificate of the broker is not known here",
            "Give its certificate with ca=.",
        ),
        62 | 64 => error(
            "the certificate of the broker is for another host name",
            "Use the name that stands in the certificate; if that cannot be, ssl.endpoint.identification.algorithm=none skips the check.",
        ),
        other => error(
            &format!("the certificate of the broker is not trusted (OpenSSL code {other})"),
            "Check the certificate and ca=.",
        ),
    }
}

/// The cluster's id, once the client has metadata.
pub(crate) fn cluster_id(client: *mut c::rd_kafka_t) -> Option<String> {
    // SAFETY: the client is alive; the text is copied and given back to the library's allocator.
    unsafe {
        let text = c::rd_kafka_clusterid(client, 200);
        if text.is_null() {
            return None;
        }
        let id = CStr::from_ptr(text).to_string_lossy().into_owned();
        c::rd_kafka_mem_free(client, text.cast());
        Some(id)
    }
}

/// A C string; `None` when the text holds a NUL, which no name of Kafka's may.
pub(crate) fn c_string(text: &str) -> Option<CString> {
    CString::new(text).ok()
}
