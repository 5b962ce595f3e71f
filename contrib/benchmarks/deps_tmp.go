package main

import (
	_ "github.com/apache/arrow-go/v18/parquet/file"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/twmb/avro/ocf"
	_ "go.etcd.io/bbolt"
	_ "gonum.org/v1/plot"
)
