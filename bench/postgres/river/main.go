// River, the job queue in Go: runs one case of the benchmark by itself and prints what the same case returns in JavaScript.
//
//	bench prepare URL                     creates its tables
//	bench one-by-one URL JOBS             one Insert per job, a hundred goroutines
//	bench bulk URL JOBS                   a thousand jobs per call, four calls at once
//	bench drain URL JOBS CONCURRENCY      fills the queue and works it off
//	bench two-processes URL JOBS          this process adds, a second one works
//	bench worker URL JOBS                 that second process: a line when it is ready and one after every JOBS jobs
//	bench latency URL SAMPLES             from Insert to the start of the handler, one job at a time
//
// It ends when its standard input does, so that it never outlives the process that started it.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const poolSize = 20

type result struct {
	Ms     float64            `json:"ms,omitempty"`
	Values map[string]float64 `json:"values,omitempty"`
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func milliseconds(took time.Duration) float64 {
	return float64(took) / float64(time.Millisecond)
}

func rate(jobs int, took time.Duration) result {
	return result{Ms: milliseconds(took), Values: map[string]float64{"rate": float64(jobs) / took.Seconds()}}
}

func connect(ctx context.Context, url string) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(url)
	must(err)
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	return pool
}

func prepare(ctx context.Context, pool *pgxpool.Pool) result {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
	return result{}
}

func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func main() {
	args := append(os.Args[1:], "", "", "", "")
	ctx := context.Background()
	go endWithParent()
	pool := connect(ctx, args[1])
	var found result
	switch args[0] {
	case "prepare":
		found = prepare(ctx, pool)
	case "one-by-one":
		found = oneByOne(ctx, pool, number(args[2]))
	case "bulk":
		found = bulk(ctx, pool, number(args[2]))
	case "drain":
		found = drain(ctx, pool, number(args[2]), number(args[3]))
	case "two-processes":
		found = twoProcesses(ctx, pool, args[1], number(args[2]))
	case "worker":
		workForOthers(ctx, pool, number(args[2]))
	case "latency":
		found = latency(ctx, pool, number(args[2]))
	default:
		log.Fatal("usage: bench prepare | one-by-one | bulk | drain | two-processes | worker | latency URL …")
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}
