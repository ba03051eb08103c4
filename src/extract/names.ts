/** What tells the name of a person from any other word with a capital: given names, and words that are none. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Common given names, in lower case. Where a capital says nothing, only these are names of people. */
export const givenNames = words(`
  aarav aaron abby abdul abigail adam adele adrian ahmed aino aisha alan alaric albert alejandro alena alessandro
  alessia alex alexander alexandra alexis alfie alfred ali alice alicia alina alison alma ama amanda amara amelia
  amina amir amy ana anders andre andrea andreas andrew andré andrés anette angela angelika anika anita anja anjali
  ann anna anne annette annika anouk anthony antje anton antonia antonio antti aoife archie arjun arne arnold arthur
  arun ashish astrid aurora ava axel ayse ayşe barbara bastian bea beate beatrice beatriz bella ben benedikt benjamin
  bernd bernhard bert bettina bianca bill birgit björk björn bo bob bogdan boris brenda brent brian brigitte bruno
  callum camila camille carina carl carla carlo carlos carmen carol carolin caroline carsten carter caspar catherine
  cecilia cedric charles charlie charlotte chiara chidi chloe chloé chris christa christiane christina christine
  christoph christopher cillian claire clara claudia claus clive clément colin connor cornelia cristina cyprian
  cédric daisy damian daniel daniela dave david dean debbie deborah declan deepak deepika denise dennis derek diana
  diane diego dieter dirk dmitri dmitry dominic dominik donald doris dorothea dorothy dragana dylan ed eddie edith
  eduard edward eero eleanor elena eleni eli elias elif elin elina elisa elisabeth elise elizabeth ella ellen elli
  elmar elsa else emil emilia emilie emily emma emre enrico eoin eric erica erik erika erin ernst erwin esra esther
  ethan eugen eva evelyn fabian fatima fatma felicitas felix fernando finley fiona florean florence florent florian
  frances francesca francesco francisco franz franziska fred freddie frederic frederik freya frida frieda friedrich
  fritz frédéric gabi gabriel gabriela gabriele gary gavin geoff georg george gerald gerd gerhard gertrud gillian
  giorgio giovanni girish gisela giulia giuseppe gordon grace graham grant greg gregor greta guido guillaume gunnar
  gunther gustav gwyneth günter günther hadrian hamid hamza hanna hannah hannes hans harald harish harold harriet
  harry hartmut hasan hassan heather heidi heike heiko heiner heinrich heinz helen helena helga helmut hendrik
  henning henri henrik henry herbert hermann hilda hilde hiroshi hiroto holger horst hubert hugo håkon ian ibrahim
  ida ignacio igor ilse ines inga inge ingeborg ingo ingrid ingvild inês irene irina iris irma isaac isabel isabell
  isabella isla ivan jack jackie jacob jacqueline jake jakob jakub james jamie jan jana jane janet janina janine
  janne jared jasmin jason javier jean jeff jennifer jenny jens jeremy jerry jess jessica jill jim jimmy jing joachim
  joana joanna joao jochen joe joel johan johann johanna johannes john jon jonas jonathan jordan jorge josef josefine
  joseph joshua josé joyce joão juan juha juho julia julian juliane julie juliette julius jurgen jussi justin jutta
  jörg jürgen kai kalle karen karin karl karla karolina karsten katarina kate katharina katherine kathleen kathrin
  kathy katja katrin kaya keith kelly ken kenji kent kerstin kevin khalid killian kim kirsten klara klaus kofi konrad
  konstantin krish kristin kristina kristof kurt kwame kyle lara lars lasse laura lauren laurent layla lea leah leila
  lena leni leo leon leonard leonie leslie levi lewis liam lilli lillian lilly lily lina linda ling linnea lino linus
  lisa lisbeth liselotte lorenz lotta lotte louis louisa louise loïc luca lucas lucia lucie lucy lucía ludwig luis
  luisa luise luiz lukas luke luna lutz lydia mads magdalena magnus maja malte manfred manish manon manuel manuela
  marc marcel marco marcus mareike margaret margarete margit maria marianne marie marina mario marion marissa marius
  marjorie mark marko markus marlene marta martha martin martina martín mary mason mateo mathias mathilda matias
  matilda matt matteo matthew matthias matti maurice max maximilian maya megan mehmet mei melanie melissa mette mia
  michael michaela michelle miguel mika mike mikhail mikko mila milan millicent milos ming minh miriam mohamed
  mohammad mohammed moira molly monica monika moritz muhammad mustafa nadia nadine naomi natalia natalie natascha
  nathan neil nele nelson ngozi niamh nick nicola nicolas nicole niels nigel niklas niko nils nina noah noel nora
  norbert nuno nuria oleg olga olive oliver olivia oluwaseun omar oscar oskar otto owen pablo paige pamela paolo
  pascal patricia patrick paul paula pauline pedro peer pekka penny peter petra phil philip philipp philippa pia
  pierre ping priya priyanka rachel rafael rahul rainer raj rajesh ralf ralph ramona raphael rasheed rasmus ravi raúl
  rebecca reed regina reinhard renate rené rhys ricardo riccardo richard rita rob robert roberta roberto robin roger
  roland rolf roman ron ronja rosa rosemarie rosie ross roxana ruben rudi rudolf rui rupert russell ruth ryan sabine
  sabrina saeed said sakura sally salma sam samantha samuel sandra sanjay santiago saoirse sara sarah sascha satish
  sean sebastian selma sergei sergio seán shannon sharon sheila shirley sibylle sid siegfried sienna sigrid silke
  silvia simon simone siobhan sirpa sofia sofía solveig sonja sophia sophie stefan stefanie steffen steffi stella
  stephan stephanie stephen sterling steve steven stuart sue sunita susan susanne suzanne sven svenja svetlana swen
  sylvia sören søren tamara tanja tara tatjana taylor ted teresa terry thabo theo theodor theresa therese thiago
  thibault thomas thorsten tiago tiina tilman tim timo tina ting tobias todd tom tomas tommy toni tony torben torsten
  tracy trent trevor trish ulf ulla ulli ulrich ulrike ursula ute uwe valentin valentina valeria vanessa vera verena
  veronika vic victor victoria vihaan viktor vincent viola virginia vivian volker wadim walter waltraud wanda wang
  wei wendy werner wilhelm will willi william wojciech wolf wolfgang xaver xavier xiu yan yara yasmin yasmine ying
  yuki yusuf yuto yvonne zainab zanele zara zaynab zoe zofia zoë øyvind`);

/** Peoples, faiths, offices, breeds and colours that are written with a capital and name nobody, in lower case. */
export const noNames = words(`
  african albanian algerian american arab argentine argentinian armenian asian australian austrian bangladeshi basque bavarian
  belgian black blond blonde brazilian brit british briton brown bulgarian canadian catalan caucasian chilean colombian
  congolese croat croatian cuban cypriot czech dane danish dominican egyptian english estonian ethiopian european filipina filipino
  finn finnish flemish french georgian german ghanaian greek haitian hawaiian hispanic hungarian icelandic indian indonesian
  iranian iraqi irish israeli italian jamaican japanese jordanian kazakh kenyan korean kurd kurdish latina latino latvian lebanese
  libyan lithuanian macedonian malaysian maltese maori mexican moroccan nepali nigerian norwegian pakistani palestinian persian
  peruvian philippine pole polish portuguese romanian russian saudi scot scottish senegalese serb serbian sicilian slovak
  slovakian slovene slovenian somali spaniard spanish sri sudanese swede swedish swiss syrian taiwanese tamil thai tibetan
  tunisian turk turkish ugandan ukrainian venezuelan vietnamese welsh white yemeni
  agnostic anglican atheist baptist buddhist calvinist catholic christian evangelical hindu jain jew jewish lutheran methodist
  mormon muslim orthodox pagan pentecostal presbyterian protestant quaker shia sikh sunni
  ceo cto cfo coo cio cmo ciso vp svp evp phd md dj hr it qa pm mvp director head president professor prof captain chief chair
  chairman chairwoman chairperson vice senior junior lead principal manager mayor minister secretary treasurer governor
  senator ambassador editor founder cofounder co-founder partner owner member employee executive associate assistant deputy
  general colonel major lieutenant sergeant officer nurse surgeon attorney judge king queen prince princess lord lady
  vegan vegetarian keto paleo democrat republican conservative liberal socialist communist libertarian green labour tory
  aries taurus gemini cancer virgo libra scorpio sagittarius capricorn aquarius pisces
  labrador lab retriever poodle beagle husky bulldog corgi dachshund chihuahua pug rottweiler shepherd terrier collie golden
  border spaniel siamese bengal sphynx ragdoll maine tabby calico himalayan burmese birman dalmatian doberman
  pomeranian schnauzer greyhound mastiff pitbull mutt mixed newfoundland bernese shiba akita samoyed
  orange grey gray ginger boomer millennial adhd team duolingo youtube mother father
  army navy marines retired half pure
  italien italienne français française allemand allemande anglais anglaise espagnol espagnole américain américaine belge suisse
  portugais portugaise russe chinois chinoise japonais japonaise marocain marocaine algérien algérienne tunisien tunisienne
  canadien canadienne médecin avocat avocate infirmier infirmière professeur argentino argentina mexicano mexicana español
  española colombiano colombiana cubano cubana italiano italiana chileno chilena peruano peruana alemán alemana brasileño
  brasileña brasileiro brasileira português portuguesa tedesco tedesca francese inglese duitser duitse belg belgische fransman
  franse engelsman engelse spanjaard spaanse italiaan italiaanse turk turkse marokkaan marokkaanse pool poolse amerikaan
  amerikaanse chinees chinese nederlander nederlandse surinamer surinaamse
  god jesus christ allah satan death love life time music money coffee google excel chatgpt claude gpt siri alexa
  here there back home dead gone ok okay great good bad best worst right wrong sick late off away done`);

/** Words for offices and departments, not for places. */
export const departments =
  words(`hr it marketing accounting sales engineering support finance legal product design
  operations procurement compliance security research logistics generation gen team group department division staff management`);

/** Where people work, with a capital now and then, without the name of it, in lower case. */
export const generalPlaces =
  words(`school church office city government hospital home work university company college food tips
  money scale night night-time uni library factory warehouse court council state`);

/** German nouns that stand behind "bei", "in" and "ist" without an article and name nothing. */
export const germanNouns =
  words(`nacht tag tage tageslicht licht kerzenlicht regen sonne sonnenschein wind sturm schnee hitze
  kälte nebel wetter musik kaffee tee freunden freundinnen kunden kundinnen bekannten verwandten nachbarn kollegen bedarf gelegenheit
  dunkelheit minusgraden schichten nachtschicht frühschicht teilzeit vollzeit elternzeit kurzarbeit homeoffice ruhe eile hektik stress
  teams gruppen projekten miete untermiete eigentum scheidung trennung frieden angst furcht armut reichtum wohlstand luxus freiheit
  sicherheit sorge harmonie gemeinschaft partnerschaft beziehung wohngemeinschaft wg haft not saus würde sünde askese isolation altbau neubau hause
  quarantäne rente pension ausbildung therapie mist schrott klasse müll geschichte insolvent pleite spitze kacke scheiße scheisse
  super top toll murks pflicht zukunft vergangenheit käse quatsch zeit geduld hunger durst liebe hoffnung glaube arbeit schlaf
  sport natur schokolade bier wein wasser geld gott jesus glück pech zufall schicksal leben tod montag dienstag mittwoch donnerstag
  freitag samstag sonnabend sonntag januar februar märz april mai juni juli august september oktober november dezember frühling
  sommer herbst winter morgen mittag abend weihnachten ostern silvester`);
