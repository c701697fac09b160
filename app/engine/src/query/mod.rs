//! The filter language of `--match` and of the filter field.
