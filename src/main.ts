process.stdout.write("recollect\n");
