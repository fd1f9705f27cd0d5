package com.example.postnotification;

import com.fasterxml.jackson.annotation.JsonProperty;

/** One notification as it was handled; times are CLOCK_MONOTONIC in ns. */
record Delivery(
    String post,
    @JsonProperty("received_ns") long received,
    @JsonProperty("ready_ns") long ready,
    @JsonProperty("done_ns") long done,
    @JsonProperty("read_at_ns") long readAt,
    String digest,
    String replica,
    boolean complete,
    String trace,
    String baggage,
    @JsonProperty("message_bytes") long messageBytes,
    @JsonProperty("message_lineage_bytes") long messageLineageBytes) {}
