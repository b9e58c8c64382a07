"""What is to be made: ColBench's tasks, and ColBench-Mini's."""
