//! Failure groups: dead letters with one fingerprint.
