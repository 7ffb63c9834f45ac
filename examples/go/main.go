// A producer in Go: adds jobs to a queue and prints what became of each.
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go@latest google.golang.org/grpc/cmd/protoc-gen-go-grpc@latest
//	buf generate ../../proto --template buf.gen.yaml
//	go run . 127.0.0.1:50051 mails 10
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	crorev1 "example/crore/v1"
)

func main() {
	address, queue := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	jobs := make([]*crorev1.NewJob, count)
	for i := range jobs {
		payload := fmt.Sprintf(`{"to":"user%d"}`, i)
		jobs[i] = &crorev1.NewJob{
			Id:      fmt.Sprintf("go-%d", i),
			Payload: &crorev1.Body{Kind: &crorev1.Body_Json{Json: payload}},
		}
	}
	response, err := crorev1.NewCroreClient(connection).Add(ctx, &crorev1.AddRequest{Queue: queue, Jobs: jobs})
	if err != nil {
		log.Fatal(err)
	}
	created := 0
	for _, result := range response.Results {
		if result.Outcome == crorev1.AddOutcome_ADD_OUTCOME_CREATED {
			created++
		}
	}
	fmt.Printf("%d jobs created\n", created)
}
