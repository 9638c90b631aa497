"""Where does it run? Each engine starts one attempt of a job as a plan says, and is then observed."""
