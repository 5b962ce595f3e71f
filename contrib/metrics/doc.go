// Package metrics writes the counters of a store in Prometheus' text exposition format,
// version 0.0.4, and serves them over HTTP.
//
// [Write] and the handler may be called concurrently: they read [minikudu.DB.Metrics]
// and keep nothing.
package metrics
