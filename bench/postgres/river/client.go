package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// The payloads of bench/payloads.mjs, built before any clock starts.
const (
	payloadSize = 97
	ringSize    = 1000
)

type payload struct {
	ID   int    `json:"id"`
	Sort string `json:"kind"`
	URL  string `json:"url"`
}

func (payload) Kind() string { return "bench" }

var ring = buildRing()

func buildRing() []payload {
	built := make([]payload, ringSize)
	for i := range built {
		built[i] = payload{ID: 100_000 + i, Sort: "resize"}
		text, err := json.Marshal(built[i])
		must(err)
		built[i].URL = ("https://example.org/" + strings.Repeat("x", payloadSize))[:payloadSize-len(text)]
	}
	return built
}

func payloads(start, count int) []river.InsertManyParams {
	params := make([]river.InsertManyParams, count)
	for i := range params {
		params[i].Args = ring[(start+i)%ringSize]
	}
	return params
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// A client that only inserts: as installed.
func inserter(pool *pgxpool.Pool) *river.Client[pgx.Tx] {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet()})
	must(err)
	return client
}

type handler struct {
	river.WorkerDefaults[payload]
	onJob func()
}

func (h *handler) Work(context.Context, *river.Job[payload]) error {
	h.onJob()
	return nil
}

// A client that works, too: it may fetch as often as River allows, and job timeouts need no timer. How often it looks without being notified stays as
// installed: it fetches at once while there is more, and is notified otherwise.
func start(ctx context.Context, pool *pgxpool.Pool, concurrency int, onJob func()) *river.Client[pgx.Tx] {
	workers := river.NewWorkers()
	river.AddWorker(workers, &handler{onJob: onJob})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: river.FetchCooldownMin,
		JobTimeout:    -1,
		Logger:        quiet(),
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers:       workers,
	})
	must(err)
	must(client.Start(ctx))
	return client
}
