package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"time"

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

const pollInterval = 20 * time.Millisecond

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

// A client that only inserts. It notifies workers at most once per cooldown.
func inserter(pool *pgxpool.Pool, cooldown time.Duration) *river.Client[pgx.Tx] {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: cooldown, Logger: quiet()})
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

// A client that works, too: it may fetch as often as River allows, and job timeouts need no timer. Of jobs added within the cooldown after a
// notification it learns only when it polls, so it polls more often than once a second, its default.
func start(ctx context.Context, pool *pgxpool.Pool, concurrency int, onJob func()) *river.Client[pgx.Tx] {
	workers := river.NewWorkers()
	river.AddWorker(workers, &handler{onJob: onJob})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: pollInterval,
		JobTimeout:        -1,
		Logger:            quiet(),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers:           workers,
	})
	must(err)
	must(client.Start(ctx))
	return client
}
