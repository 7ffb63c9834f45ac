package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

const (
	callers       = 100
	chunk         = 1000
	callsInFlight = 4
	warmUp        = 30
	pause         = 4 * time.Millisecond
	checkPending  = time.Millisecond
)

// Runs work(0) … work(count - 1) with at most width of them at once.
func inFlight(count, width int, work func(index int)) {
	var next atomic.Int64
	var lanes sync.WaitGroup
	for range min(width, count) {
		lanes.Go(func() {
			for index := next.Add(1) - 1; index < int64(count); index = next.Add(1) - 1 {
				work(int(index))
			}
		})
	}
	lanes.Wait()
}

func oneByOne(ctx context.Context, pool *pgxpool.Pool, jobs int) result {
	client := inserter(pool, river.FetchCooldownDefault)
	started := time.Now()
	inFlight(jobs, callers, func(index int) {
		_, err := client.Insert(ctx, ring[index%ringSize], nil)
		must(err)
	})
	return rate(jobs, time.Since(started))
}

func bulk(ctx context.Context, pool *pgxpool.Pool, jobs int) result {
	client := inserter(pool, river.FetchCooldownDefault)
	started := time.Now()
	insertMany(ctx, client, jobs, chunk)
	return rate(jobs, time.Since(started))
}

func insertMany(ctx context.Context, client *river.Client[pgx.Tx], jobs, size int) {
	inFlight((jobs+size-1)/size, callsInFlight, func(index int) {
		from := index * size
		_, err := client.InsertManyFast(ctx, payloads(from, min(size, jobs-from)))
		must(err)
	})
}

// From the first job handled until nothing is waiting or running.
func drain(ctx context.Context, pool *pgxpool.Pool, jobs, concurrency int) result {
	insertMany(ctx, inserter(pool, river.FetchCooldownDefault), jobs, chunk)
	var first time.Time
	var once sync.Once
	var seen atomic.Int64
	handled := make(chan struct{})
	start(ctx, pool, concurrency, func() {
		once.Do(func() { first = time.Now() })
		if seen.Add(1) == int64(jobs) {
			close(handled)
		}
	})
	<-handled
	for pending(ctx, pool) {
		time.Sleep(checkPending)
	}
	return rate(jobs, time.Since(first))
}

func pending(ctx context.Context, pool *pgxpool.Pool) bool {
	var found bool
	query := "select exists (select from river_job where state in ('available', 'running'))"
	must(pool.QueryRow(ctx, query).Scan(&found))
	return found
}

func latency(ctx context.Context, pool *pgxpool.Pool, samples int) result {
	began := make(chan time.Time, 1)
	client := start(ctx, pool, 1, func() { began <- time.Now() })
	took := make([]time.Duration, 0, warmUp+samples)
	for index := range warmUp + samples {
		time.Sleep(pause)
		called := time.Now()
		_, err := client.Insert(ctx, ring[index%ringSize], nil)
		must(err)
		took = append(took, (<-began).Sub(called))
	}
	sorted := slices.Sorted(slices.Values(took[warmUp:]))
	at := func(share float64) float64 {
		return milliseconds(sorted[int(math.Floor(float64(samples)*share))])
	}
	return result{Values: map[string]float64{"p50": at(0.5), "p99": at(0.99)}}
}
